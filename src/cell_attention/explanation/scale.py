"""The colours of importances: blue is against the prediction, orange is for it.

Blue and orange can be distinguished with every kind of colour blindness. Between them the scale is
straight in OKLab (Ottosson 2020), a space in which equal steps look equal, and both halves are
equally far from the middle, so neither sign looks stronger than the other.
"""

import math

STEPS = 65
"""Number of colours of a scale; the one in the middle is for zero."""

Colour = tuple[float, float, float]

_ENDS = {
    # lightness of the middle; lightness and chroma of both ends: dark on light, light on dark
    "light": (0.93, 0.60, 0.15),
    "dark": (0.36, 0.78, 0.13),
}
_AGAINST, _FOR = 250.0, 55.0
"""Hues, in degrees."""

SIZES = ("#e8a33d", "#56b4e9", "#2a9d7f", "#d9c83a", "#3f78b5", "#c96a2b", "#c583ae", "#8a8a8a")
"""Fills of polygons of 3, 4, … edges, the last for all larger: after Okabe and Ito (2008), chosen
to be distinguishable with colour blindness."""


def scale(theme: str = "light") -> tuple[str, ...]:
    """Return the colours from −1 to 1 as #rrggbb."""
    middle, lightness, chroma = _ENDS[theme]
    found = []
    for step in range(STEPS):
        value = 2.0 * step / (STEPS - 1) - 1.0
        hue = math.radians(_FOR if value > 0 else _AGAINST)
        share = abs(value)
        found.append(
            _hex(
                (
                    middle + share * (lightness - middle),
                    share * chroma * math.cos(hue),
                    share * chroma * math.sin(hue),
                )
            )
        )
    return tuple(found)


def colour(value: float, theme: str = "light") -> str:
    """Return the colour of a value in −1…1; values beyond have the colour of the end."""
    place = round((min(1.0, max(-1.0, value)) + 1.0) / 2.0 * (STEPS - 1))
    return _SCALES[theme][place]


def size_colour(size: int) -> str:
    """Return the fill of a polygon with so many edges."""
    return SIZES[min(size - 3, len(SIZES) - 1)]


def _hex(lab: Colour) -> str:
    """Convert OKLab to sRGB, by the matrices of its definition."""
    lightness, a, b = lab
    cones = [
        (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3,
        (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3,
        (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3,
    ]
    rows = (
        (4.0767416621, -3.3077115913, 0.2309699292),
        (-1.2684380046, 2.6097574011, -0.3413193965),
        (-0.0041960863, -0.7034186147, 1.7076147010),
    )
    linear = [sum(w * c for w, c in zip(row, cones, strict=True)) for row in rows]
    return "#" + "".join(f"{_byte(value):02x}" for value in linear)


def _byte(linear: float) -> int:
    value = min(1.0, max(0.0, linear))
    bent = 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055
    return round(255 * bent)


_SCALES = {theme: scale(theme) for theme in _ENDS}
