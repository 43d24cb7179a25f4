"""Wrong words at the command line, in one sentence."""

import difflib
import re
from collections.abc import Iterator, Sequence

_FRAME = re.compile(r"[╭╰+─-]{2}[^\w-].*|[─-]+")
"""A line of the parser's boxes, with the title in it, or between two parts."""


def options_in(text: str) -> tuple[str, ...]:
    """Return the names of the options that a help text describes."""
    return tuple(re.findall(r"^[│| ] (?:-\w, )?(--\w[\w.-]*)", _uncoloured(text), re.MULTILINE))


def in_one_line(
    box: str, words: Sequence[str], *, verbs: Sequence[str], options: Sequence[str]
) -> str:
    """Shorten the parser's box of many lines to one sentence.

    options: those of the verb, the first of the words.
    """
    verb = words[0] if words and words[0] in verbs else ""
    if verb and (wrong := next(_unknown(words, options), None)):
        return f"{verb} has no option {wrong}{_nearest(wrong, options)}"
    inside = [re.sub(r"^[│|]|[│|]$", "", line).strip() for line in _uncoloured(box).splitlines()]
    text = " ".join(" ".join(line for line in inside if not _FRAME.fullmatch(line)).split())
    title = "(Unrecognized( or misplaced)?|Required) options (?=[A-Z])"
    text = re.sub(f"^({title}|(Value error|Invalid choice) )", "", text)
    text = re.split(r" ?(?:Argument helptext|For full helptext|Available subcommands):?", text)[0]
    return _shortened(text, verb, verbs) or "wrong arguments; --help lists them"


def _shortened(text: str, verb: str, verbs: Sequence[str]) -> str:
    """Say in our words what the parser says."""
    if found := re.match(r"Unrecognized (?:or misplaced )?options: (\S+)", text):
        word = found[1].rstrip(",")
        if verb:
            return f"{word!r} is one argument too many; {verb} --help says which there are"
        close = difflib.get_close_matches(word, verbs, n=1)
        hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(verbs)}"
        return f"there is no {'option' if word.startswith('-') else 'verb'} {word!r}; {hint}"
    if found := re.match(r"Missing from (.+?): (\S+)", text):
        return f"{found[2]} is missing; {found[1]} --help says what it is"
    if found := re.match(r"Error parsing (\S+): .*instantiated from (\[.*?\])", text):
        kind = _kind_of("int" if "'int'" in text else "float" if "'float'" in text else "")
        return f"{found[1]} must be {kind}, got {found[2].strip('[]')}"
    if found := re.search(r"Error parsing (\S+): .*?\b(int|float)\b.*?: ('.*')$", text):
        return f"{found[1]} must be {_kind_of(found[2])}, got {found[3]}"
    if found := re.search(r"Missing value for argument '(\S+)'", text):
        return f"{found[1]} needs a value; --help-all says which"
    if found := re.search(
        r"[Ii]nvalid choice ('.*?') for argument '(\S+)'.* one of \((.*)\)", text
    ):
        choices = sorted({*found[3].split(", ")} - {"'None'"})
        return f"{found[2]} must be one of {', '.join(choices)}, got {found[1]}"
    return text


def _unknown(words: Sequence[str], options: Sequence[str]) -> Iterator[str]:
    """Yield the words that look like options and are none, as the parser takes them."""
    for word in words[1:]:
        name = word.split("=")[0]
        looks = re.match(r"--?[^\W\d]", name)
        if looks and _plain(name) not in options and name not in ("-h", "--help-all"):
            yield name


def _nearest(word: str, options: Sequence[str]) -> str:
    """Suggest the option that is written like a word, or say where all of them are listed."""
    stem = _plain(word).strip("-").lower()
    names = [name.removeprefix("--") for name in options]
    part = [name for name in names if stem in name.split("-")]
    begun = [name for name in names if len(stem) > 1 and name.startswith(stem)]
    close = difflib.get_close_matches(stem, names, n=1, cutoff=0.65)
    found = [*sorted(part, key=len), *close, *sorted(begun, key=len)]
    return f"; did you mean --{found[0]}?" if found else "; --help-all lists those that it has"


def _plain(name: str) -> str:
    """Write an option as the parser compares it."""
    stem = name.lstrip("-")
    return name[: len(name) - len(stem)] + stem.replace("_", "-")


def _uncoloured(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _kind_of(name: str) -> str:
    return {"int": "a whole number", "float": "a number"}.get(name, "numbers")
