# browser.py - A headless Chromium, driven over a pipe.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Opens pages, runs script in them, moves the pointer, takes pictures.

Speaks the DevTools protocol over two pipes (--remote-debugging-pipe), so that it
needs no port and no package. Remembers what went wrong in a page: exceptions,
console errors and warnings, and every request but the page's own.
"""
import base64
import json
import os
import select
import shutil
import struct
import subprocess
import time
import zlib

import numpy

TIMEOUT_S = 30
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
         "--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking", "--force-color-profile=srgb")


def find():
    """The browser's path; None where it is not installed."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    def __init__(self, program, scratch):
        to_browser, from_us = os.pipe()
        to_us, from_browser = os.pipe()

        def take_pipes():  # the protocol wants descriptors 3 and 4
            high = [os.dup(to_browser), os.dup(from_browser)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [program, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={scratch}", "about:blank"],
            preexec_fn=take_pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": str(scratch)})
        os.close(to_browser)
        os.close(from_browser)
        self.out, self.into = to_us, from_us
        self.buffer, self.number, self.session = b"", 0, None
        self.problems, self.url = [], ""

    def __enter__(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page", "Network"):
            self.call(domain + ".enable")
        return self

    def __exit__(self, *unused):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.into)

    # ---- Protocol ----

    def read(self, deadline):
        while b"\0" not in self.buffer:
            if not select.select([self.out], [], [], max(0, deadline - time.monotonic()))[0]:
                raise RuntimeError(f"the browser says nothing for {TIMEOUT_S} s")
            piece = os.read(self.out, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.buffer += piece
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self.into, text):]
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            answer = self.read(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.note(answer)

    def note(self, event):
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            text = details.get("exception", {}).get("description") or details["text"]
            self.problems.append("exception: " + text.splitlines()[0])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.problems.append("console: " + str([a.get("value") for a in params["args"]]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append("log: " + params["entry"]["text"])
        elif method == "Network.requestWillBeSent" and params["request"]["url"] not in (self.url, "about:blank"):
            self.problems.append("request: " + params["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.problems.append("dialog: " + params["message"])

    # ---- Pages ----

    def open(self, path, width=1400, height=1000, dark=False, script=True):
        self.call("Page.navigate", url="about:blank")
        self.until("location.href === 'about:blank'")
        self.problems, self.url = [], path.resolve().as_uri()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.call("Page.navigate", url=self.url)
        self.until("location.href !== 'about:blank' && document.readyState === 'complete'")
        if script:
            self.until("document.documentElement.dataset.drawings > 0")

    def run(self, expression):
        """The value of a JavaScript expression; promises are awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression[:80]}: {answer['exceptionDetails']['exception']['description']}")
        return answer["result"].get("value")

    def until(self, condition):
        deadline = time.monotonic() + TIMEOUT_S
        while not self.run(f"!!({condition})"):
            if time.monotonic() > deadline:
                raise RuntimeError(f"never came true: {condition}; {'; '.join(self.problems) or 'no error'}")
            time.sleep(0.02)

    def drawn(self, action):
        """Does ACTION and waits for the charts to be drawn again."""
        before = self.run("document.documentElement.dataset.drawings")
        action()
        self.until(f"document.documentElement.dataset.drawings !== {before!r}")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y, count=1):
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=count)

    def box(self, selector):
        """(x, y, width, height) of an element in the window, scrolled to if need be."""
        return self.run(f"(e => (e.scrollIntoView({{block: 'center'}}), (r => [r.x, r.y, r.width, r.height])"
                        f"(e.getBoundingClientRect())))(document.querySelector({selector!r}))")

    def picture(self, selector=None, path=None):
        """Pixels as an array of height x width x 3, of the window or one element."""
        clip = {}
        if selector:
            x, y, width, height = self.box(selector)
            top = self.run("window.scrollY")
            clip = {"clip": dict(x=x, y=y + top, width=width, height=height, scale=1)}
        png = base64.b64decode(self.call("Page.captureScreenshot", format="png", optimizeForSpeed=True, **clip)["data"])
        if path:
            path.write_bytes(png)
        return decode_png(png)


def paeth_row(line, above, step):
    for i in range(step, len(line)):
        a, b, c = line[i - step], above[i], above[i - step]
        p = a + b - c
        pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
        line[i] = (line[i] + (a if pa <= pb and pa <= pc else b if pb <= pc else c)) & 255


def average_row(line, above, step):
    for i in range(step, len(line)):
        line[i] = (line[i] + (line[i - step] + above[i]) // 2) & 255


def decode_png(png):
    """8-bit RGB or RGBA, not interlaced, as Chromium writes them."""
    at, packed, header = 8, b"", None
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", png[at + 8:at + 8 + length])
        elif kind == b"IDAT":
            packed += png[at + 8:at + 8 + length]
        at += 12 + length
    width, height, depth, color = header[:4]
    if depth != 8 or color not in (2, 6) or header[6]:
        raise ValueError(f"a PNG of depth {depth}, color type {color}")
    step = 3 if color == 2 else 4
    rows = numpy.frombuffer(zlib.decompress(packed), numpy.uint8).reshape(height, 1 + width * step)
    pixels = numpy.zeros((height + 1, (width + 1) * step), numpy.uint8)  # a rim of zeros above and left
    for y in range(height):
        filter_type, line, above = rows[y, 0], pixels[y + 1], pixels[y]
        line[step:] = rows[y, 1:]
        if filter_type == 1:
            line[:] = numpy.cumsum(line.reshape(-1, step), axis=0, dtype=numpy.uint8).reshape(-1)
        elif filter_type == 2:
            line[:] += above
        elif filter_type in (3, 4):
            plain = bytearray(line)
            (average_row if filter_type == 3 else paeth_row)(plain, bytes(above), step)
            line[:] = numpy.frombuffer(plain, numpy.uint8)
    return pixels[1:, step:].reshape(height, width, step)[:, :, :3]
