"""The report in a browser: everything that a person does with it, by hand or by keyboard."""

import csv
import io
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch

from cell_attention import CellAttentionNetwork, Model, NetworkConfig
from cell_attention.cli.entry import run
from cell_attention.data.molecules.features import Featuriser
from cell_attention.explanation import explain
from cell_attention.models.registry import build_network, defaults
from watched import Watched

MOLECULES = [
    ("CC(=O)Oc1ccccc1C(=O)O", "aspirin", "1"),
    ("c1ccc2ccccc2c1", "naphthalene", "0"),
    ("CCO", "<script>alert(1)</script>", "1"),
    ("[He]", 'helium "noble", </script><img src=x onerror=alert(2)>', "0"),
    ("C1CC2CCC1C2", "norbornane", ""),
]


@pytest.fixture(scope="module")
def model() -> Model:
    torch.manual_seed(3)
    config = NetworkConfig.edges(
        lift_heads=4, hidden=(6, 6, 4), heads=(2, 3, 1), ratio=0.6, layer_readout="cat"
    )
    nodes, edges = Featuriser().widths
    network = CellAttentionNetwork(config, nodes, edges, 2).eval()
    return Model((network,), "classes", ("0", "1"), Featuriser().record, {}, ("active",))


@pytest.fixture(scope="module")
def report(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    model.save_pretrained(folder / "model")
    with (folder / "molecules.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("smiles", "name", "active"))
        writer.writerows(MOLECULES)
    out = folder / "report.html"
    assert (
        run(["explain", str(folder / "model"), str(folder / "molecules.csv"), "--out", str(out)])
        == 0
    )
    return out


@pytest.fixture
def shown(chromium: Any, report: Path) -> Iterator[Watched]:
    page = chromium.new_page(viewport={"width": 1400, "height": 1000}, accept_downloads=True)
    watched = Watched(page)
    page.goto(report.as_uri())
    yield watched
    page.close()
    assert watched.said == [], "no complaint, no alert"
    local = [url for url in watched.asked if url.startswith(("file:", "data:", "blob:"))]
    assert local == watched.asked, "nothing is asked of any server"


def test_every_row_is_listed_with_its_name_as_text(shown: Watched) -> None:
    assert shown.names() == [name for _, name, _ in MOLECULES]
    assert shown.text("#count") == "5 graphs"
    assert shown.page.locator("img").count() == 0


def test_headings_sort_and_blanks_stay_last(shown: Watched) -> None:
    page = shown.page
    page.click("th[data-key=name] button")
    assert shown.names() == sorted((n for _, n, _ in MOLECULES), key=str.lower)
    assert page.get_attribute("th[data-key=name]", "aria-sort") == "ascending"
    page.click("th[data-key=name] button")
    assert shown.names() == sorted((n for _, n, _ in MOLECULES), key=str.lower, reverse=True)
    page.click("th[data-key=confidence] button")
    shares = [float(t) for t in page.locator("#graphs td:nth-child(5)").all_inner_texts()]
    assert shares == sorted(shares, reverse=True)
    page.click("th[data-key=truth] button")
    assert shown.names()[-1] == "norbornane"
    page.click("th[data-key=truth] button")
    assert shown.names()[-1] == "norbornane"


def test_the_filter_looks_at_names_and_molecules_and_at_what_is_right(shown: Watched) -> None:
    page = shown.page
    page.fill("#filter", "NAPHTH")
    assert shown.names() == ["naphthalene"]
    assert shown.text("#count") == "1 of 5 graphs"
    page.fill("#filter", "[He]")
    assert len(shown.names()) == 1
    page.fill("#filter", "")
    right, wrong = (
        (page.select_option("#which", which), shown.names())[1] for which in ("right", "wrong")
    )
    assert sorted(right + wrong) == sorted(n for _, n, truth in MOLECULES if truth)
    page.select_option("#which", "all")
    assert len(shown.names()) == 5


def test_a_click_opens_the_large_picture_and_escape_closes_it(shown: Watched) -> None:
    page = shown.page
    assert page.is_hidden("#detail")
    page.click("td.name >> text=aspirin")
    assert shown.text("#name") == "aspirin"
    assert "active is predicted as" in shown.text("#said")
    assert "truth 1" in shown.text("#said")
    assert page.locator("#picture [data-hit]").count() == 13
    assert page.locator("#polygons tbody tr").count() == 1
    page.click("#next")
    assert shown.text("#name") == "naphthalene"
    page.click("#previous")
    assert shown.text("#name") == "aspirin"
    page.keyboard.press("Escape")
    assert page.is_hidden("#detail")
    assert page.evaluate("document.activeElement.textContent") == "aspirin"


def test_the_keyboard_alone_opens_a_graph_and_hears_its_edges(shown: Watched) -> None:
    page = shown.page
    page.locator("td.name button").nth(1).focus()
    page.keyboard.press("Enter")
    assert shown.text("#name") == "naphthalene"
    page.locator("#edges button").first.focus()
    assert "it hears" in shown.text("#heard")
    assert page.locator('#picture [data-part="lit"] line').count() > 1
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert "it hears" in shown.text("#heard")
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button,input,select')].filter("
        "one => !one.textContent.trim() && !(one.labels && one.labels.length)).length"
    )
    assert unnamed == 0, "everything that can be used has a name"


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_hovering_lights_neighbours_with_the_weights_of_the_layer_and_head(
    shown: Watched, model: Model, side: str
) -> None:
    page = shown.page
    (one,) = explain(model, "CC(=O)Oc1ccccc1C(=O)O", measure=False)
    page.click("td.name >> text=aspirin")
    page.select_option("#view", side)
    for number, layer in enumerate(one.layers):
        pairs, weights = getattr(layer, f"{side}_pairs"), getattr(layer, side)
        page.select_option("#layer", index=number)
        for head in range(weights.size(1)):
            page.select_option("#head", index=head)
            for receiver in pairs[0].unique().tolist()[:3]:
                page.locator(f'[data-hit="{receiver}"]').dispatch_event("mouseenter")
                mine = pairs[0] == receiver
                lit = page.locator('#picture [data-part="lit"] line')
                found = [int(lit.nth(k).get_attribute("data-lit")) for k in range(lit.count())]
                assert found == [receiver, *pairs[1, mine].tolist()]
                texts = page.locator('#picture [data-part="weights"] text').all_text_contents()
                expected = weights[mine, head].detach().tolist()
                assert [float(t) for t in texts] == pytest.approx(expected, abs=0.008)
                assert f"layer {number + 1}, head {head + 1}" in shown.text("#heard")
                page.locator(f'[data-hit="{receiver}"]').dispatch_event("mouseleave")
    assert page.locator('#picture [data-part="lit"] line').count() == 0


def test_a_real_pointer_over_a_bond_lights_it(shown: Watched) -> None:
    page = shown.page
    page.click("td.name >> text=naphthalene")
    box = page.locator('[data-hit="0"]').bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.get_attribute('#picture [data-part="lit"] line', "data-lit") == "0"
    page.mouse.move(5, 5)
    assert page.locator('#picture [data-part="lit"] line').count() == 0


def test_the_sliders_keep_the_top_edges_and_step_through_the_pooling(
    shown: Watched, model: Model
) -> None:
    page = shown.page
    (one,) = explain(model, "CC(=O)Oc1ccccc1C(=O)O", measure=False)
    page.click("td.name >> text=aspirin")
    page.locator("#top").fill("4")
    drawn = page.locator('#picture [data-part="edges"] line')
    kept = {int(drawn.nth(k).get_attribute("data-edge")) for k in range(drawn.count())}
    assert kept == set(one.top_edges(4).tolist())
    assert shown.text("#top-value") == "4 of 13 edges"
    page.locator("#top").fill("13")
    for step in range(4):
        page.locator("#step").fill(str(step))
        left = set(range(13)) if step == 0 else set(one.layers[step - 1].survivors.tolist())
        gone = page.locator("#picture [data-gone]")
        missing = {int(gone.nth(k).get_attribute("data-gone")) for k in range(gone.count())}
        assert missing == set(range(13)) - left
    assert page.locator("#picture [data-polygon]").count() == 0, "no polygon is whole at the end"
    page.select_option("#view", "pooling")
    page.select_option("#layer", index=1)
    score = one.layers[1].score
    assert score is not None
    texts = page.locator("#edges td.number").all_inner_texts()
    stated = [float(text) for text in texts if text != "gone"]
    assert stated == pytest.approx(sorted(score.tolist(), reverse=True), rel=1e-2, abs=1e-4)


def test_importances_and_polygons_are_those_of_python(shown: Watched, model: Model) -> None:
    for place, (smiles, _, _) in enumerate(MOLECULES):
        (one,) = explain(model, smiles, measure=False)
        for key, values in (("edge", one.edges), ("polygon", one.polygons), ("node", one.nodes)):
            found = shown.value(f"graphs[{place}].{key}")
            assert found == pytest.approx(values.tolist(), rel=1e-3, abs=1e-9)
        for number, layer in enumerate(one.layers):
            opened = shown.value(f"opened(graphs[{place}]).layers[{number}]")
            for side in ("lower", "upper"):
                pairs = [[pair["receiver"], pair["sender"]] for pair in opened[side]]
                assert pairs == getattr(layer, f"{side}_pairs").T.tolist()
                weights = [w for pair in opened[side] for w in pair["weights"][:-1]]
                stored = getattr(layer, side).detach().flatten().tolist()
                assert weights == pytest.approx(stored, abs=0.5 / 255 + 1e-6)  # float32


def test_downloads_are_the_picture_and_the_table(
    shown: Watched, model: Model, tmp_path: Path
) -> None:
    page = shown.page
    page.click("td.name >> text=<script>")
    with page.expect_download() as arrived:
        page.click("#svg")
    arrived.value.save_as(tmp_path / "one.svg")
    picture = ElementTree.parse(tmp_path / "one.svg").getroot()  # noqa: S314 - our own file
    assert picture.tag.endswith("svg")
    assert "<script>alert(1)</script>" in "".join(picture.itertext())
    assert "speaks against – speaks for active = " in "".join(picture.itertext())
    with page.expect_download() as arrived:
        page.click("#csv")
    arrived.value.save_as(tmp_path / "one.csv")
    (one,) = explain(model, "CCO", measure=False)
    ours = list(csv.reader(io.StringIO(one.to_csv())))
    theirs = list(csv.reader(io.StringIO((tmp_path / "one.csv").read_text(encoding="utf-8"))))
    assert [row[2:5] for row in ours] == [row[2:5] for row in theirs]
    assert [row[6] for row in ours] == [row[6] for row in theirs]
    numbers = [float(row[5]) for row in theirs[1:]]
    assert numbers == pytest.approx([float(row[5]) for row in ours[1:]], rel=1e-3)
    assert theirs[1][:2] == ["4", "<script>alert(1)</script>"]


def test_light_and_dark_differ_and_both_are_kept_in_the_picture(shown: Watched) -> None:
    page = shown.page
    page.click("td.name >> text=naphthalene")
    paper = "document.querySelector('#picture rect').getAttribute('fill')"
    ground = "getComputedStyle(document.body).backgroundColor"
    button = "getComputedStyle(document.querySelector('#theme')).borderColor === \
        getComputedStyle(document.querySelector('#filter')).borderColor"
    before = shown.value(paper), shown.value(ground)
    assert shown.value(button)
    page.click("#theme")
    after = shown.value(paper), shown.value(ground)
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert not shown.value(button)  # it looks pressed
    page.emulate_media(color_scheme="dark")
    page.click("#theme")
    assert (shown.value(paper), shown.value(ground)) == before


def test_a_graph_without_edges_and_a_link_to_a_graph(shown: Watched, report: Path) -> None:
    page = shown.page
    row = shown.value("graphs[3].row")
    page.goto("about:blank")
    page.goto(f"{report.as_uri()}#{row}")
    assert "no edges" in shown.text("#legend")
    assert "no polygons of up to" in shown.text("#polygons")
    page.evaluate("location.hash = '#3'")
    page.wait_for_function("document.getElementById('name').textContent === 'naphthalene'")


def test_predicted_values_sort_as_numbers(chromium: Any, tmp_path: Path) -> None:
    torch.manual_seed(1)
    nodes, edges = Featuriser().widths
    network = CellAttentionNetwork(
        NetworkConfig.edges(hidden=(4,), heads=(2,)), nodes, edges, 1
    ).eval()
    made = Model((network,), "values", (), Featuriser().record, {}, ("y",))
    made.save_pretrained(tmp_path / "model")
    (tmp_path / "some.smi").write_text(
        "".join("C" * n + "O" * (n % 3) + "\n" for n in range(1, 13))
    )
    out = tmp_path / "r.html"
    assert (
        run(["explain", str(tmp_path / "model"), str(tmp_path / "some.smi"), "--out", str(out)])
        == 0
    )
    page = chromium.new_page()
    page.goto(out.as_uri())
    page.click("th[data-key=prediction] button")
    shown = [float(t) for t in page.locator("#graphs td:nth-child(4)").all_inner_texts()]
    assert shown == sorted(shown)
    assert min(shown) < 0 < max(shown) or len({abs(v) >= 1 for v in shown}) == 2
    page.click("td.name >> nth=0")
    assert "raises y" in page.inner_text("#legend")
    page.close()


def test_a_network_without_attention_shows_importances_alone(chromium: Any, tmp_path: Path) -> None:
    torch.manual_seed(2)
    config, (nodes, edges) = defaults("gin", "molecules.csv")[0], Featuriser().widths
    sizes = {"node_features": nodes, "edge_features": edges, "outputs": 2}
    network = build_network("gin", config, sizes).eval()
    made = Model(
        (network,), "classes", ("0", "1"), Featuriser().record, {}, ("active",), name="gin",
        config=config, sizes=sizes,
    )  # fmt: skip
    made.save_pretrained(tmp_path / "model")
    (tmp_path / "some.smi").write_text("c1ccccc1CO aromatic\nCCO alcohol\n[He] noble\n")
    out = tmp_path / "gin.html"
    words = ["explain", str(tmp_path / "model"), str(tmp_path / "some.smi"), "--out", str(out)]
    assert run(words) == 0
    page = chromium.new_page()
    watched = Watched(page)
    page.goto(out.as_uri())
    assert "gradient × input" in page.text_content("#how")
    page.click("td.name >> text=aromatic")
    for name in ("view", "layer", "head", "step"):
        assert page.is_hidden(f"#{name}")
    assert page.is_visible("#top")
    assert "to see what it carries." in watched.text("#heard")
    (one,) = explain(made, "c1ccccc1CO", [1], measure=False)
    for edge, carried in enumerate(one.edges.tolist()):
        page.locator(f'[data-hit="{edge}"]').dispatch_event("mouseenter")
        assert "hears" not in watched.text("#heard")
        stated = watched.text("#heard").rstrip(".").rsplit(" ", 1)[1].replace("−", "-")
        assert float(stated) == pytest.approx(carried, rel=1e-2, abs=1e-4)
    page.click("#next")
    assert watched.text("#name") == "alcohol"
    page.click("#next")
    assert "no edges" in watched.text("#legend")
    page.close()
    assert watched.said == [], "no complaint, no alert"


def test_in_a_narrow_window_every_click_brings_the_picture(shown: Watched) -> None:
    page = shown.page
    page.set_viewport_size({"width": 360, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for name in ("aspirin", "naphthalene"):
        page.evaluate("scrollTo(0, 0)")
        page.click(f"td.name >> text={name}")
        top = page.evaluate("document.getElementById('detail').getBoundingClientRect().top")
        assert -1 < top < 420  # browsers scroll to whole pixels


def test_escape_in_the_filter_leaves_the_picture_open(shown: Watched) -> None:
    page = shown.page
    page.click("td.name >> text=aspirin")
    page.focus("#filter")
    page.keyboard.press("Escape")
    assert page.is_visible("#detail")


def test_choosing_a_layer_does_not_pool_the_picture_of_importances(shown: Watched) -> None:
    page = shown.page
    page.click("td.name >> text=aspirin")
    page.select_option("#layer", index=2)
    assert page.locator("#picture [data-gone]").count() == 0
    page.select_option("#view", "pooling")
    page.select_option("#layer", index=2)
    assert page.locator("#picture [data-gone]").count() > 0


def test_a_thousand_molecules_open_in_three_seconds_and_thirty_megabytes(
    chromium: Any, tmp_path: Path, data_dir: Path
) -> None:
    source = data_dir / "MoleculeNet" / "BBBP.csv"
    torch.manual_seed(0)
    nodes, edges = Featuriser().widths
    network = CellAttentionNetwork(NetworkConfig.molecules(), nodes, edges, 2).eval()
    made = Model((network,), "classes", ("0", "1"), Featuriser().record, {}, ("p_np",))
    made.save_pretrained(tmp_path / "model")
    out = tmp_path / "large.html"
    words = [
        "explain",
        str(tmp_path / "model"),
        str(source),
        "--out",
        str(out),
    ]
    assert run(words) == 0
    assert out.stat().st_size < 30e6
    seconds = min(opening(chromium, out) for _ in range(3))
    print(f"{out.stat().st_size / 1e6:.1f} MB, open after {seconds:.2f} s")
    assert seconds < 3.0


def opening(chromium: Any, path: Path) -> float:
    """Seconds until the table and its first picture are there."""
    page = chromium.new_page()
    start = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_function("document.querySelectorAll('#graphs tbody tr').length === 1000")
    page.wait_for_function("document.querySelector('#graphs td.thumb svg') !== null")
    passed = time.perf_counter() - start
    page.close()
    return passed


STEREO = (
    "smiles,name,active\nC[C@H](N)C(=O)O,alanine,1\nC1CC,broken,0\nCCO,ethanol,\nC[SiH3],silane,0\n"
)


def test_the_page_is_for_one_class_and_shows_wedges_numbers_warnings_and_unread_rows(
    chromium: Any, model: Model, tmp_path: Path
) -> None:
    known = replace(model, seen={"elements": (1, 6, 7, 8)}, thresholds=(0.2,))
    known.save_pretrained(tmp_path / "model")
    (tmp_path / "s.csv").write_text(STEREO)
    for name in ("0", "1"):
        words = ["explain", str(tmp_path / "model"), str(tmp_path / "s.csv"), "--class", name]
        assert run([*words, "--out", str(tmp_path / f"{name}.html"), "--no-faithfulness"]) == 0
    page = chromium.new_page(viewport={"width": 1400, "height": 1000})
    watched = Watched(page)
    carried = {}
    for name in ("0", "1"):
        page.goto((tmp_path / f"{name}.html").as_uri())
        assert f"orange speaks for active = {name} and blue against it" in watched.text("header")
        texts = []
        for row in range(3):
            page.locator("td.name button").nth(row).click()
            assert f"speaks for active = {name}:" in watched.text("#legend")
            texts.append(watched.text("#legend"))
        carried[name] = page.evaluate("graphs[0].edge")
    assert carried["0"] == pytest.approx([-share for share in carried["1"]], rel=1e-2, abs=1e-4)
    # The row that cannot be read is in the table with its reason, and so is a warning.
    assert watched.text("#count") == "3 graphs, 1 row cannot be read"
    assert "RDKit cannot read" in watched.text("tr.unread")
    assert page.locator("td.warning", has_text="element Si was not in training").count() == 1
    page.fill("#filter", "ethanol")
    assert page.locator("tr.unread").count() == 0
    page.fill("#filter", "")
    page.locator("td.name button").nth(0).click()
    assert page.locator("#picture [data-wedge]").count() == 1
    assert page.locator("#picture [data-part=numbers]").count() == 0
    page.check("#numbers")
    found = page.locator("#picture [data-part=numbers] text").all_text_contents()
    assert found == [str(node) for node in range(6)]
    doubted = page.locator("#graphs td:nth-child(5)", has_text="*")
    below = [row for row in page.evaluate("graphs.map((g) => g.confidence)") if row < 0.5]
    assert doubted.count() == len(below) > 0
    assert "(the model decides at 0.200)" in str(doubted.first.get_attribute("title"))
    page.screenshot(path=str(tmp_path / "page.png"))
    page.close()
    assert watched.said == []
