"""Look at the built site in Chromium, which has no network: ``python -m tests.site FOLDER``.

Every formula of the page of formulas must be drawn, and no page of the list may ask for a file that
is not in the site.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.reporting.browser import WAIT, Browser

FORMULAS = "docs/math.html"
PAGES = ("docs/index.html", "README.html", "docs/api.html", "docs/guide.html", FORMULAS)
# Formulas that were found, that were drawn, that MathJax could not read, and that show a backslash.
COUNTS = r"""[
    document.querySelectorAll('.math').length,
    document.querySelectorAll('.math mjx-container').length,
    document.querySelectorAll('mjx-merror, .math [data-mjx-error]').length,
    [...document.querySelectorAll('.math mjx-assistive-mml')].filter(
        (one) => one.textContent.includes('\\')
    ).length,
]"""


def drawn(browser):
    """These counts, when all formulas are drawn or the time is over."""
    counts = browser.script(COUNTS)
    for _ in range(WAIT * 5):
        if counts[0] and counts[1] >= counts[0]:
            break
        time.sleep(0.2)
        counts = browser.script(COUNTS)
    return counts


def asked_for(browser):
    """Addresses outside the site that the page has asked for."""
    requests = (one for one in browser.events if one.get("method") == "Network.requestWillBeSent")
    addresses = {one["params"]["request"]["url"] for one in requests}
    return sorted(one for one in addresses if not one.startswith(("file:", "data:", "blob:")))


def main(folder):
    """Raise AssertionError for a formula that is not drawn, or a file that is not there."""
    browser = Browser()
    try:
        browser.send(
            "Network.emulateNetworkConditions",
            offline=True,
            latency=0,
            downloadThroughput=0,
            uploadThroughput=0,
        )
        for page in PAGES:
            browser.open(Path(folder) / page)
            if page == FORMULAS:
                there, done, wrong, raw = drawn(browser)
                assert there > 100, f"{page} has {there} formulas only"
                assert done == there, f"{page}: {done} of {there} formulas are drawn"
                assert not wrong, f"{page}: MathJax cannot read {wrong} formulas"
                assert not raw, f"{page}: {raw} formulas show a backslash"
                sys.stdout.write(f"{page}: {done} formulas drawn without a network\n")
            assert not asked_for(browser), f"{page} asks for {asked_for(browser)}"
    finally:
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
