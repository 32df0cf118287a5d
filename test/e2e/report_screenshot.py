#!/usr/bin/env python3
# report_screenshot.py - Reports in a browser: no errors, readable pictures.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Opens reports of zero-report in a headless Chromium and looks at them.

    report_screenshot.py --bin BUILD/bin [--only TEXT] [--keep DIR]

Prints one line a failure and ends with `N passed, N failed`; --keep leaves the
pictures in DIR. The traces are those of report_traces.py. Positions are those of
lib/Report/web/lanes.js.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy

import browser
import harness
from harness import require

HERE = pathlib.Path(__file__).resolve().parent
LAYERS = 32
# Of the lanes' picture: its border, the axis, the row of a rank, a lane.
BORDER, AXIS, HEADER, PAIR, GAP, GUTTER, MARGIN = 1, 24, 24, 19, 5, 186, 10


class Reports:
    """Makes each report once."""

    def __init__(self, tools):
        self.tools, self.once = tools, harness.Once()

    def get(self, *flags):
        return self.once.get(flags, lambda: self.make(flags))

    def make(self, flags):
        stem = self.tools.scratch / "-".join(["report", *flags]).replace("---", "-")
        trace, page = stem.with_suffix(".json"), stem.with_suffix(".html")
        subprocess.run([sys.executable, HERE / "report_traces.py", *flags, "-o", trace], check=True)
        self.tools.ok("zero-report", trace, "--report", page)
        return page

    def of(self, tool, *flags):
        """The report that a tool itself writes."""
        page = self.tools.scratch / f"{tool}.html"
        self.tools.ok(tool, *flags, "--report", page)
        return page

    def both(self):
        return self.get("--layers", str(LAYERS), "--measured")


class Page:
    """A report that is open, and what the cases ask about it."""

    def __init__(self, driver, path, keep, **options):
        self.driver, self.keep = driver, keep
        driver.open(path, **options)
        self.check()

    def check(self):
        require(not self.driver.problems, "; ".join(self.driver.problems))

    def js(self, expression):
        return self.driver.run(expression)

    def count(self, selector):
        return self.js(f"document.querySelectorAll({selector!r}).length")

    def colour(self, name):
        """A colour of the page's palette as three numbers."""
        text = self.js(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")
        return numpy.array([int(text[i:i + 2], 16) for i in (1, 3, 5)])

    def picture(self, name, selector=None):
        path = self.keep / f"{name}.png" if self.keep else None
        return self.driver.picture(selector, path)

    def lanes(self):
        """What the last drawing counted."""
        return {k: int(v) for k, v in self.js("({...document.getElementById('lanes').dataset})").items()}

    def drawn(self, expression):
        self.driver.drawn(lambda: self.js(expression))


def is_colour(pixels, colour, slack=3):
    return (numpy.abs(pixels.astype(int) - colour) <= slack).all(axis=-1)


def lane_top(rank, channel, source):
    """Top of a lane of an open rank, with two sources and four channels a rank."""
    block = HEADER + 4 * (2 * PAIR + GAP)
    return BORDER + AXIS + rank * block + HEADER + channel * (2 * PAIR + GAP) + source * PAIR


def top_of(column, colour, name):
    """The uppermost pixel of a colour."""
    found = numpy.nonzero(is_colour(column, colour))[0]
    require(len(found), f"no {name} at the peak of memory")
    return found[0]


# ---- Cases --------------------------------------------------------------------


def rows_and_marks(page):
    """The tables have a row a parameter, collective and command; charts are drawn."""
    spans = 5 * LAYERS + LAYERS + 1
    expected = {"#parameters tbody tr": 1 + 4 * LAYERS, "#traffic tbody tr": 6, "#differences tbody tr": spans,
                "#notes li": 2, ".cards dt": 4, "#legend > span": 8, "table": 4, "thead th button": 33}
    for selector, count in expected.items():
        require(page.count(selector) == count, f"{page.count(selector)} of {selector}, expected {count}")
    drawn = page.lanes()
    require(drawn["lanes"] == 16, f"{drawn['lanes']} lanes drawn, expected 16")  # 2 ranks, 4 channels, 2 sources
    folded = 6 * 3 * LAYERS  # compute of the other ranks
    require(drawn["spans"] == 4 * spans + folded, f"{drawn['spans']} spans drawn, expected {4 * spans + folded}")


def lanes_have_their_colours(page):
    """Each lane shows its own channel, as busy as it is."""
    pixels = page.picture("lanes", "#lanes")
    right = pixels.shape[1] - BORDER - MARGIN
    step = 0.57783 / 0.642  # predicted and measured end, of report_traces.py
    # Busy shares of the predicted step: 0.4416, 0.256 and 0.1344 s of 0.57783;
    # a pixel between spans stays empty.
    busy = [("compute", .764, 2 * LAYERS), ("all_gather", .443, 2 * LAYERS), ("reduce_scatter", .233, LAYERS)]
    for channel, (kind, share, spans) in enumerate(busy):
        top = lane_top(0, channel, 0)
        row = pixels[top + 6, BORDER + GUTTER:right]
        end = int(len(row) * step)
        found, expected = is_colour(row, page.colour(kind)).sum() / end, share - spans / end
        require(abs(found - expected) < .04, f"{kind} takes {found:.3f} of its lane, expected {expected:.3f}")
        others = [o for o in ("compute", "all_gather", "reduce_scatter") if o != kind]
        require(not any(is_colour(row, page.colour(o)).any() for o in others), f"another colour in the lane of {kind}")
    foot = pixels[lane_top(0, 1, 0) + PAIR - 4, BORDER + GUTTER:right]
    share = is_colour(foot, page.colour("bad"), 12).sum() / (len(foot) * step)
    require(.15 < share < .4, f"{share:.3f} of the gathers' foot is marked as exposed, expected 0.23")
    labels = pixels[:, BORDER:BORDER + GUTTER]
    require(is_colour(labels, page.colour("ink"), 40).sum() > 400, "no text beside the lanes")


def memory_is_stacked(page):
    """Kinds from the bottom up, the budget above them, the peak marked."""
    pixels = page.picture("memory", "#memory-chart")
    left, right = BORDER + GUTTER, pixels.shape[1] - BORDER - MARGIN
    column = pixels[:, left + (right - left) // 4]  # 160 ms: the peak
    tops = [top_of(column, page.colour(kind), kind) for kind in ("parameter", "state", "gathered", "activation")]
    require(tops == sorted(tops, reverse=True) and len(set(tops)) == 4, f"kinds do not lie on each other: tops {tops}")
    state = is_colour(column, page.colour("state")).sum() / is_colour(column, page.colour("parameter")).sum()
    require(5.5 < state < 6.5, f"state is {state:.2f} times the parameters, expected 6")
    budget = is_colour(pixels[:, left:right], page.colour("bad"), 30).sum(axis=1)
    line = int(budget.argmax())
    require(budget[line] > .4 * (right - left), "no budget line")
    require(line < tops[-1], "the budget line is not above the peak")
    require(is_colour(pixels[:tops[-1] + 12, left:right], page.colour("ink"), 60).sum() > 100, "the peak has no label")


def is_readable(page, name):
    """Many colours, not one flat ground; nothing wider than the window."""
    pixels = page.picture(name)
    colours = len(numpy.unique(pixels.reshape(-1, 3), axis=0))
    require(colours > 60, f"{colours} colours in the picture")
    ground = is_colour(pixels, page.colour("bg")).mean() + is_colour(pixels, page.colour("panel")).mean()
    require(.3 < ground < .97, f"{ground:.2f} of the picture is empty")
    ink = is_colour(pixels, page.colour("ink"), 30).mean()
    require(ink > .003, f"{ink:.4f} of the picture is text")
    wide = page.js("document.documentElement.scrollWidth - window.innerWidth")
    require(wide <= 0, f"the page is {wide} pixels wider than its window")
    cut = page.js("[...document.querySelectorAll('h1, h2, p, dt, dd, li, label, button, .legend span')]"
                  ".filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0).map(e => e.textContent)")
    require(not cut, f"text is cut: {cut[:3]}")


def contrast(a, b):
    """WCAG's contrast ratio of two colours."""
    def luminance(colour):
        c = colour / 255
        c = numpy.where(c <= .04045, c / 12.92, ((c + .055) / 1.055) ** 2.4)
        return c @ [.2126, .7152, .0722]
    low, high = sorted([luminance(a), luminance(b)])
    return (high + .05) / (low + .05)


def text_stands_out(page):
    for ink, ground in (("ink", "bg"), ("ink", "panel"), ("soft", "bg"), ("soft", "panel"), ("bad", "panel")):
        ratio = contrast(page.colour(ink), page.colour(ground))
        require(ratio >= 4.5, f"{ink} on {ground} has contrast {ratio:.2f}, expected 4.5")


def names_stay_text(page):
    """The name of the first parameter is shown as it is and has not run."""
    shown = page.js("document.querySelector('#parameters tbody th').textContent")
    require("</script><script>alert(1)</script>" in shown, f"the name is shown as {shown!r}")
    require(page.count("script") == 2 and page.count("img") == 0, "a name became part of the page")


def pointer_and_keys(page):
    """Tooltip, detail box, zoom, drag, fold, search and choice of ranks."""
    x, y, width, _ = page.driver.box("#lanes")
    right = width - 2 * BORDER - MARGIN
    forward = x + GUTTER + (right - GUTTER) * .1  # of the step: forward compute and gathers
    page.driver.mouse("mouseMoved", forward, y + lane_top(0, 1, 0) + 6)
    tip = page.js("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent")
    for words in ("gather model.layers.", "predictedall_gather, rank 0, command ", "takes4.000 ms", "sends350.0 MiB",
                  "GiB/s", "measured"):
        require(words in tip, f"no '{words}' in the tooltip: {tip!r}")
    page.driver.click(forward, y + lane_top(0, 1, 0) + 6)
    require("gather model.layers." in page.js("document.getElementById('detail').textContent"), "a click shows no detail")
    before = page.lanes()["spans"]
    page.driver.drawn(lambda: page.driver.mouse("mouseWheel", forward, y + 60, deltaX=0, deltaY=-400, modifiers=2))
    zoomed = page.lanes()["spans"]
    require(zoomed < .8 * before, f"{zoomed} spans after zooming in, {before} before")
    page.driver.drawn(lambda: page.js("document.getElementById('zoom-fit').click()"))
    require(page.lanes()["spans"] == before, "Fit does not show the whole step")
    page.driver.drawn(lambda: page.driver.click(x + 40, y + BORDER + AXIS + 10))
    require(page.lanes()["lanes"] == 8, "a click on a rank does not fold it")
    page.drawn("document.getElementById('expand').click()")
    page.drawn("(e => { e.value = '2-3'; e.dispatchEvent(new Event('input')); })(document.getElementById('ranks'))")
    require(page.lanes()["lanes"] == 16, "the choice of ranks does nothing")
    page.drawn("(e => { e.value = 'LAYERS.31'; e.dispatchEvent(new Event('input')); })(document.getElementById('find'))")
    found = page.js("document.getElementById('found').textContent")
    require(found == f"{9 * 6} spans", f"the search says '{found}', expected 54 spans")


def drag_moves(page):
    x, y, _, _ = page.driver.box("#lanes")
    page.drawn("document.getElementById('zoom-in').click()")
    before = page.picture("before-drag", "#lanes")
    page.driver.mouse("mousePressed", x + 700, y + 60, button="left", buttons=1, clickCount=1)
    page.driver.drawn(lambda: page.driver.mouse("mouseMoved", x + 500, y + 60, button="left", buttons=1))
    page.driver.mouse("mouseReleased", x + 500, y + 60, button="left", clickCount=1)
    after = page.picture("after-drag", "#lanes")
    row = lane_top(0, 0, 0) + 6
    moved = (after[row, 300:900] == before[row, 500:1100]).all(axis=-1).mean()
    require(moved > .95, f"{moved:.2f} of a lane moved with the pointer")


def tables_sort_and_filter(page):
    column = "[...document.querySelectorAll('#parameters tbody tr')].map(r => Number(r.cells[7].dataset.v))"
    button = "document.querySelectorAll('#parameters thead button')[7].click()"
    page.js(button)
    falling = page.js(column)
    page.js(button)
    require(falling == sorted(falling, reverse=True), "a click does not sort by falling bytes")
    require(page.js(column) == sorted(falling), "a second click does not turn the order")
    page.js("(e => { e.value = 'layers.7.'; e.dispatchEvent(new Event('input')); })"
            "(document.querySelector('#parameters .filter'))")
    shown = page.js("[...document.querySelectorAll('#parameters tbody tr')].filter(r => !r.hidden).length")
    require(shown == 4, f"the filter shows {shown} rows, expected 4")
    require(page.js("document.querySelector('#parameters output').textContent") == f"4 of {1 + 4 * LAYERS} rows",
            "the filter does not say how many rows it shows")


def offload_is_shown(page):
    """Lanes of copies and of the host in their colours, a chart for each memory space, a table of the links."""
    lanes = page.picture("offload-lanes", "#lanes")
    for kind in ("to_host", "to_device", "disk_read", "disk_write", "host"):
        require(is_colour(lanes, page.colour(kind)).any(), f"no {kind} in the lanes")
    for chart, kinds in (("memory-host", ("state", "gradient")), ("memory-disk", ("state",))):
        pixels = page.picture(chart, f"#{chart}-chart")
        for kind in kinds:
            require(is_colour(pixels, page.colour(kind)).any(), f"no {kind} in the chart {chart}")
    rows = page.count("#links tbody tr")
    require(rows == 5, f"the table of links has {rows} rows, expected 5")
    require(page.count("#offload li") == 1, "the rules of what was chosen are not shown")


def many_spans(page):
    """131,105 spans: narrow ones are merged, and drawing stays quick."""
    drawn = page.lanes()
    require(drawn["merged"] > drawn["spans"] / 2, f"{drawn['merged']} of {drawn['spans']} spans merged")
    page.drawn("document.getElementById('expand').click()")
    start = time.monotonic()
    for k in range(5):
        page.drawn(f"document.getElementById('zoom-{'out' if k % 2 else 'in'}').click()")
    mean = (time.monotonic() - start) / 5
    require(mean < 1, f"a zoom takes {mean:.2f} s")
    require(page.count("#differences tbody tr") == 500, "the table of differences is not cut at 500 rows")
    page.check()


def of_a_tool(page, *tables):
    """A report of real numbers: lanes with spans, memory in its colours, tables with rows."""
    drawn = page.lanes()
    require(drawn["lanes"] > 0 and drawn["spans"] > 10, f"drawn: {drawn}")
    lanes, memory = page.picture("tool-lanes", "#lanes"), page.picture("tool-memory", "#memory-chart")
    for pixels, name in ((lanes, "compute"), (lanes, "all_gather"), (memory, "parameter"), (memory, "activation")):
        require(is_colour(pixels, page.colour(name)).sum() > 50, f"no {name} in the picture")
    for table in tables:
        require(page.count(f"#{table} tbody tr") > 0, f"no row in the table of {table}")


def tables_without_script(driver, reports):
    driver.open(reports.both(), script=False)
    # The protocol cannot run script either; what the page paints tells.
    pixels = driver.picture("#parameters")
    require(len(numpy.unique(pixels.reshape(-1, 3), axis=0)) > 20, "no table without script")


def problems_are_noticed(driver, scratch):
    """The tests can fail: a page that does everything wrong is caught at each."""
    page = scratch / "bad.html"
    page.write_text("<!DOCTYPE html><html data-drawings=1><img src=missing.png><script>console.error('a');"
                    "setTimeout(() => { throw Error('b'); })</script>")
    driver.open(page)
    time.sleep(.2)
    driver.run("1")  # reads what the page has sent
    found = " ".join(driver.problems)
    for word in ("console: ['a']", "exception: Error: b", "request: file", "log: Failed to load"):
        require(word in found, f"'{word}' is not noticed: {found}")


def add_cases(cases, driver, reports, keep):
    def add(name, check, *args, flags=("--layers", str(LAYERS), "--measured"), **options):
        cases.add(name, lambda: check(Page(driver, reports.get(*flags), keep, **options), *args))

    cases.add("problems are noticed", problems_are_noticed, driver, reports.tools.scratch)
    add("rows and marks", rows_and_marks)
    add("lanes have their colours", lanes_have_their_colours)
    add("memory is stacked", memory_is_stacked)
    add("names stay text", names_stay_text)
    add("pointer and keys", pointer_and_keys)
    add("drag moves", drag_moves)
    add("tables sort and filter", tables_sort_and_filter)
    add("offload is shown", offload_is_shown, flags=("--layers", str(LAYERS), "--offload"))
    add("readable", is_readable, "wide", height=1800)
    add("readable in the dark", is_readable, "dark", height=1800, dark=True)
    add("readable in a narrow window", is_readable, "narrow", width=420, height=2400)
    for name, dark in (("light", False), ("dark", True)):
        add(f"text stands out, {name}", text_stands_out, dark=dark)
    deep = ("--layers", "126", "--ranks", "1024", "--model", "llama3-405b")
    add("readable with hundreds of layers", is_readable, "deep", flags=deep, height=1800)
    add("readable with hundreds of layers, narrow", is_readable, "deep-narrow", flags=deep, width=420, height=1800)
    big = ("--layers", "126", "--ranks", "64", "--spans-per-layer", "6", "--measured")
    add("many spans", many_spans, flags=big)
    mlp = harness.model("mlp").folder
    train = ("zero-run", mlp / "ts_train.onnx", "--loss", "cross-entropy", "--dim", "batch=4", "--ranks", "4",
             "--zero-stage", "3", "--data", mlp / "data.safetensors", "--steps", "2")
    plan = ("zero-plan", "--model", "llama3-8b", "--seq", "8192", "--machine", "h100", "--ranks", "8", "--zero-stage", "3")
    elsewhere = (*train, "--offload", "optimizer=host")
    for name, flags, tables in (("of zero-run", train, ["traffic", "parameters"]),
                                ("of zero-run, offloaded", elsewhere, ["traffic", "links", "parameters"]),
                                ("of zero-plan", plan, ["traffic", "exposed", "parameters"])):
        cases.add(name, lambda flags=flags, tables=tables:
                  of_a_tool(Page(driver, reports.of(*flags), keep), *tables))
    cases.add("tables without script", tables_without_script, driver, reports)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, metavar="DIR", help="the folder of zero-report")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases whose name contains TEXT")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="where to leave the pictures")
    args = parser.parse_args()
    program = browser.find()
    if not program:
        print("error: no Chromium on PATH; script/setup installs it", file=sys.stderr)
        return 1
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        tools, cases = harness.Tools(args.bin, scratch), harness.Cases()
        with browser.Browser(program, tools.scratch / "profile") as driver:
            add_cases(cases, driver, Reports(tools), args.keep)
            passed, failed = cases.run(1, args.only)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
