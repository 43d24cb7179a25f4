"""The local page in a browser: typing, dropping, looking, by hand or by keyboard."""

import csv
import io
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import expect

from cell_attention import CellAttentionNetwork, Model, NetworkConfig, explain
from cell_attention.cli.entry import run
from cell_attention.data.molecules.features import Featuriser
from cell_attention.inference.seen import neighbours_of
from watched import Watched

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
NAPHTHALENE = "c1ccc2ccccc2c1"
DROP = """([name, text]) => {
  const file = new File([text], name, { type: "text/csv" });
  const carried = new DataTransfer();
  carried.items.add(file);
  for (const kind of ["dragover", "drop"]) {
    document.getElementById("smiles").dispatchEvent(
      new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: carried }));
  }
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(3)
    config = NetworkConfig.edges(
        lift_heads=4, hidden=(6, 6, 4), heads=(2, 3, 1), ratio=0.6, layer_readout="cat"
    )
    nodes, edges = Featuriser().widths
    members = tuple(CellAttentionNetwork(config, nodes, edges, 2).eval() for _ in range(2))
    model = Model(
        members, "classes", ("0", "1"), Featuriser().record, {}, ("active",),
        seen={"elements": (6, 8), "bonds": (1, 2, 12)},
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("serve") / "model"
    model.save_pretrained(folder)
    return folder


def served(*words: str) -> "tuple[subprocess.Popen[str], str]":
    command = [sys.executable, "-m", "cell_attention", "serve", "--port", "0", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().split(" at ")[1].split(" ")[0]


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    process, url = served(str(folder))
    yield url
    process.kill()
    process.communicate()


@pytest.fixture
def shown(chromium: Any, address: str) -> Iterator[Watched]:
    page = chromium.new_page(viewport={"width": 1400, "height": 1000}, accept_downloads=True)
    watched = Watched(page)
    page.goto(address)
    yield watched
    page.close()
    assert watched.said == [], "no complaint, no alert"
    local = [url for url in watched.asked if url.startswith((address, "data:", "blob:"))]
    assert local == watched.asked, "nothing is asked of any other server"


def done(page: Any, count: int) -> None:
    """Wait until all lines are answered; the page's policy forbids what evaluates texts."""
    expect(page.locator("#progress")).to_have_text(f"{count} of {count} done", timeout=60_000)


def predict(shown: Watched, text: str) -> None:
    page = shown.page
    count = len([line for line in text.split("\n") if line.strip()])
    page.fill("#smiles", text)
    page.click("#predict")
    done(page, count)


def test_what_is_typed_is_predicted_and_drawn(shown: Watched, folder: Path) -> None:
    predict(shown, f"{ASPIRIN} aspirin\n\n{NAPHTHALENE}")
    assert shown.names() == ["aspirin", NAPHTHALENE]
    assert shown.text("#name") == "aspirin"
    assert "active is predicted as" in shown.text("#said")
    assert "active_spread" in shown.text("#said")
    assert shown.page.locator("#picture [data-hit]").count() == 13
    assert shown.text("#problem") == ""
    (one,) = explain(folder, ASPIRIN, measure=False)
    found = shown.value("graphs[0].edge")
    (second,) = explain(folder, ASPIRIN, [1], measure=False)  # the class that a page explains
    assert found == pytest.approx(second.edges.tolist(), rel=1e-2, abs=1e-5)
    confidence = float(shown.page.locator("#graphs td:nth-child(5)").first.inner_text())
    assert confidence == pytest.approx(one.prediction, abs=1e-2)


@pytest.fixture(scope="module")
def of_values(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page of a model of values with an interval and its training molecules."""
    torch.manual_seed(3)
    sizes = Featuriser().widths
    network = CellAttentionNetwork(NetworkConfig.molecules(), *sizes, 2).eval()
    model = Model(
        (network,), "values", (), Featuriser().record, {}, ("logp", "dose"),
        margins=(0.5, None), neighbours=neighbours_of([ASPIRIN, "COC(=O)c1ccccc1OC(C)=O"]),
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("serve") / "values"
    model.save_pretrained(folder)
    process, url = served(str(folder))
    yield url
    process.kill()
    process.communicate()


def test_intervals_and_similarities_stand_beside_a_prediction(
    chromium: Any, of_values: str
) -> None:
    page = chromium.new_page()
    shown = Watched(page)
    page.goto(of_values)
    predict(shown, f"{ASPIRIN} aspirin\nCCCCCCCCBr other")
    said = shown.text("#said")
    value = float(said.split("logp is predicted as ")[1].split(";")[0])
    interval = said.split("nine of ten true values of logp are meant to lie in ")[1].split(";")[0]
    assert [float(end) for end in interval.split(" … ")] == pytest.approx(
        [value - 0.5, value + 0.5], abs=0.01
    )
    assert "of dose" not in said
    assert "similarity to the nearest training molecule 1.00" in said
    page.click("td.name >> nth=1")
    assert "unlike the training molecules: the nearest has similarity" in shown.text("#said")
    page.close()
    assert shown.said == []


def test_a_narrow_window_in_the_dark_shows_everything(chromium: Any, address: str) -> None:
    page = chromium.new_page(viewport={"width": 420, "height": 900}, color_scheme="dark")
    shown = Watched(page)
    page.goto(address)
    predict(shown, f"{ASPIRIN} aspirin\nC1CC a ring with quite a long name that is not closed")
    for what in ("document.documentElement", "document.querySelector('#list .scroll')"):
        assert page.evaluate(f"{what}.scrollWidth <= {what}.clientWidth"), what
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    page.close()
    assert shown.said == []


def test_a_prediction_with_its_picture_is_there_within_a_second(shown: Watched) -> None:
    predict(shown, "CCO")
    seconds = []
    for text in ("CCCO", "CCCCO", ASPIRIN):
        start = time.perf_counter()
        predict(shown, text)
        assert shown.page.locator("#picture svg").count() == 1
        seconds.append(time.perf_counter() - start)
    print(f"a picture after {min(seconds):.2f} s")
    assert min(seconds) < 1.0


def test_layers_and_heads_are_those_of_the_report(shown: Watched, folder: Path) -> None:
    predict(shown, ASPIRIN)
    (one,) = explain(folder, ASPIRIN, measure=False)
    page = shown.page
    page.select_option("#view", "lower")
    for number, layer in enumerate(one.layers):
        page.select_option("#layer", index=number)
        assert page.locator("#head option").count() == layer.lower.size(1) + 1
        page.select_option("#head", index=0)
        receiver = int(layer.lower_pairs[0, 0])
        page.locator(f'[data-hit="{receiver}"]').dispatch_event("mouseenter")
        texts = page.locator('#picture [data-part="weights"] text').all_text_contents()
        expected = layer.lower[layer.lower_pairs[0] == receiver, 0].tolist()
        assert [float(text) for text in texts] == pytest.approx(expected, abs=0.008)
        page.locator(f'[data-hit="{receiver}"]').dispatch_event("mouseleave")
    page.select_option("#view", "pooling")
    assert page.locator("#picture [data-gone]").count() > 0


def test_what_cannot_be_read_is_said_at_the_box(shown: Watched) -> None:
    predict(shown, "C1CC")
    assert "RDKit cannot read 'C1CC'" in shown.text("#problem")
    assert shown.page.is_hidden("#detail")
    predict(shown, "C1CC ring\nCCO\nCCN amine\nnonsense")
    assert shown.text("#problem") == "2 of 4 lines cannot be predicted, 1 with a warning:"
    notes = shown.page.locator("#notes li").all_inner_texts()
    assert [note.split(":")[0] for note in notes] == [
        "Line 1, ring", "Line 3, amine", "Line 4, nonsense",
    ]  # fmt: skip
    assert "element N was not in training" in notes[1]
    assert shown.names() == ["CCO", "amine"]
    predict(shown, "CCO")
    assert shown.text("#problem") == ""
    assert shown.page.locator("#notes li").count() == 0


def test_an_empty_box_is_asked_for_a_molecule(shown: Watched) -> None:
    for text in ("", " \n\t\n"):
        shown.page.fill("#smiles", text)
        shown.page.click("#predict")
        assert shown.text("#problem").startswith("There is no molecule")
    assert not [url for url in shown.asked if "/api/" in url]


def test_two_hundred_lines_come_in_parts(shown: Watched) -> None:
    lines = ["C" * (1 + n % 7) + "O" * (n % 3) + f" m{n}" for n in range(200)]
    predict(shown, "\n".join(lines))
    assert shown.names() == [f"m{n}" for n in range(200)]
    assert shown.text("#count") == "200 graphs"
    assert len([url for url in shown.asked if url.endswith("/api/explain")]) == 10
    shown.page.fill("#smiles", "\n".join(["C"] * 1001))
    shown.page.click("#predict")
    assert "1001 molecules are too many for this page" in shown.text("#problem")


def test_a_dropped_table_is_predicted_and_a_wrong_file_refused(shown: Watched) -> None:
    page = shown.page
    page.evaluate(DROP, ["new.csv", 'smiles;id\nCCO;"a;b"\nC1CC;ring\nc1ccccc1;<b>c</b>\n'])
    done(page, 3)
    assert shown.names() == ["a;b", "<b>c</b>"]
    assert shown.page.locator("#notes li").all_inner_texts()[0].startswith("Line 3, ring: RDKit")
    page.evaluate(DROP, ["new.pdf", "x"])
    assert shown.text("#problem") == "new.pdf: a .csv, .tsv or .smi file is expected."


def test_a_table_without_a_header_is_an_error_at_the_box(shown: Watched) -> None:
    shown.page.route("**/api/read", lambda route: route.fulfill(
        status=200, content_type="application/json", body='{"rows": []}'))  # fmt: skip
    shown.page.evaluate(DROP, ["new.csv", "smiles\n"])
    expect(shown.page.locator("#problem")).not_to_be_empty()
    assert shown.text("#problem").startswith("There is no molecule")


def test_names_are_text_and_nothing_else(shown: Watched) -> None:
    names = ["<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "{{data}}", "'; --"]
    predict(shown, "\n".join(f"CCO {name}" for name in names) + "\n<script>alert(3)</script> x")
    assert shown.names() == names
    assert shown.page.locator("img").count() == 0
    assert "<script>" in shown.page.locator("#notes li").first.inner_text()
    shown.page.click("td.name >> nth=1")
    assert shown.text("#name") == names[1]


def test_the_keyboard_alone_is_enough(shown: Watched) -> None:
    page = shown.page
    assert page.evaluate("document.activeElement.id") == "smiles"
    page.keyboard.type(f"{NAPHTHALENE} naphthalene")
    page.keyboard.press("Control+Enter")
    done(page, 1)
    assert shown.text("#name") == "naphthalene"
    assert page.evaluate("document.activeElement.id") == "smiles"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "predict"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the first example
    expect(page.locator("#name")).to_have_text("nitrobenzene")
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button,input,select,textarea')].filter("
        "one => !one.textContent.trim() && !(one.labels && one.labels.length)).length"
    )
    assert unnamed == 0, "everything that can be used has a name"


def test_the_download_has_the_rows_of_the_command(
    shown: Watched, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [("CCO", "ethanol"), ("C1CC", 'a "ring"'), (ASPIRIN, "aspirin, pure")]
    predict(shown, "\n".join(" ".join(row) for row in rows[:2]))
    predict(shown, " ".join(rows[2]))
    with shown.page.expect_download() as arrived:
        shown.page.click("#results")
    arrived.value.save_as(tmp_path / "ours.csv")
    source = tmp_path / "new.csv"
    with source.open("w", newline="") as file:
        csv.writer(file).writerows([("smiles", "name"), *rows])
    capsys.readouterr()
    assert run(["predict", str(folder), str(source)]) == 0
    theirs = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    ours = list(csv.DictReader(io.StringIO((tmp_path / "ours.csv").read_text())))
    assert list(ours[0]) == list(theirs[0])
    numbers = ("active_probability", "active_spread")
    for mine, other in zip(ours, theirs, strict=True):
        for key, value in mine.items():
            if key in numbers and value:
                assert float(value) == pytest.approx(float(other[key]), abs=1e-5)
            else:
                assert value == other[key]


def test_a_server_that_has_gone_is_said_at_the_box(chromium: Any, folder: Path) -> None:
    process, url = served(str(folder))
    page = chromium.new_page()
    page.goto(url)
    process.kill()
    process.communicate()
    page.fill("#smiles", "CCO")
    page.click("#predict")
    expect(page.locator("#problem")).not_to_be_empty()
    assert page.inner_text("#problem").startswith("The server does not answer")
    page.close()


def test_pages_without_a_model_and_of_the_api_need_no_script(chromium: Any, address: str) -> None:
    process, url = served()
    page = chromium.new_page(java_script_enabled=False)
    watched = Watched(page)
    page.goto(url)
    assert "cell-attention demo" in page.inner_text("main")
    page.goto(f"{address}docs")
    assert "POST /api/predict" in page.inner_text("main")
    page.close()
    process.kill()
    process.communicate()
    assert watched.said == []
