"""A page of the explorer in Chromium, as a person uses it; ``conftest.py`` has what opens one."""

from itertools import count

import pytest
from in_node import corpus
from waiting import HANGS

webdriver = pytest.importorskip("selenium.webdriver", reason="there is no selenium")
wait = pytest.importorskip("selenium.webdriver.support.wait")
Keys = webdriver.Keys

CSS = "css selector"
WIDE, PHONE = 1400, 390  # pixels
VIEWS = ["next", "attention", "gradients", "learn"]
LESSONS = {f"{number:02}": f"lessons/{number:02}.html" for number in range(12)}
HTML = "<b>fett</b><img src=x onerror=alert(1)></script>"
NO_HTML = "main img, main b, main script"  # of which there is none where HTML is shown as text
TEXTS = """
return [...document.querySelectorAll(arguments[0])].map((element) =>
  element.getClientRects().length ? (element.innerText ?? element.textContent).trim() : "");
"""  # all that is seen, at once: a table has hundreds of cells
WHILE_LEARNING = """
const [click, at, done] = arguments;
const counts = [];
let frames = 0;
const tick = () => requestAnimationFrame(() => ((frames += 1), tick()));
tick();
const observer = new MutationObserver(() => {
  const count = document.querySelectorAll(".readings li").length;
  if (count !== counts.at(-1)) {
    counts.push(count);
    if (count === at) document.getElementById(click).click();
  }
});
observer.observe(document.getElementById("lesson"), { childList: true });
document.getElementById("teach").click();
const wait = () => setTimeout(() => {
  const goes_on = document.getElementById("stop").getAttribute("aria-disabled") === "false";
  return goes_on ? wait() : (observer.disconnect(), done({ counts, frames }));
});
wait();
"""  # as the curve grows: how many points it has had, and how often the page was drawn


class Page:
    """The page in a file in the browser; `selector` is one of CSS."""

    numbers = count()

    def __init__(self, driver, path):
        self.driver, self.path = driver, path
        self.be_wide(WIDE)

    def go(self, fragment):
        anew = f"?{next(self.numbers)}"  # or another fragment would be no other page
        self.driver.get(self.path.as_uri() + anew + fragment)

    def open(self, fragment="#example=1"):
        self.go(fragment)
        assert self.run("return document.documentElement.dataset.ready") == "yes"

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def all(self, selector):
        return self.driver.find_elements(CSS, selector)

    def one(self, selector):
        return self.driver.find_element(CSS, selector)

    def until(self, selector):
        self.wait(lambda _: self.all(selector))

    def until_run(self, script):
        self.wait(lambda _: self.run(script))

    def wait(self, condition):
        wait.WebDriverWait(self.driver, HANGS, poll_frequency=0.02).until(condition)

    def click(self, selector):
        self.one(selector).click()

    def click_on(self, identity):
        """Wherever it is, and also where something lies over it."""
        script = "document.getElementById(arguments[0]).dispatchEvent(new Event('click'))"
        self.run(script, identity)

    def texts(self, selector):
        return self.run(TEXTS, selector)

    def content(self, selector):
        """The text of what is there for a screen reader, and not seen."""
        return self.one(selector).get_attribute("textContent")

    def press(self, *keys):
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self):
        return self.driver.switch_to.active_element.get_attribute("id")

    def tab_to(self, identity):
        for _ in range(40):
            if self.focused() == identity:
                return
            self.press(Keys.TAB)
        raise AssertionError(f"the tab key does not reach {identity}")

    def is_checked(self, selector):
        return self.one(selector).get_attribute("aria-checked") == "true"

    def number(self, *keys):
        """What is told of the number of a box to which these keys lead."""
        self.run("document.getElementById('numbers').focus()")
        self.press(*keys)
        return self.one(".readout").text

    def write(self, selector, text):
        """At once, and any character."""
        box = self.one(selector)
        box.clear()
        self.run("arguments[0].value = arguments[1]", box, text)
        self.run("arguments[0].dispatchEvent(new Event('input'))", box)

    def translate(self, text):
        self.write("#text", text)
        self.click("#translate")

    def teach(self, click="", at=0):
        """Learn to the end; or click on an identity when the curve has so many points."""
        self.driver.set_script_timeout(HANGS)
        return self.driver.execute_async_script(WHILE_LEARNING, click, at)

    def touch(self, selector):
        self.run("arguments[0].scrollIntoView({ block: 'center' })", self.one(selector))
        x, y = self.run(
            """const { left, top, width, height } = arguments[0].getBoundingClientRect();
               return [left + width / 2, top + height / 2]""",
            self.one(selector),
        )
        points = [{"x": x, "y": y}]
        for kind, touched in (("touchStart", points), ("touchEnd", [])):
            self.driver.execute_cdp_cmd(
                "Input.dispatchTouchEvent", {"type": kind, "touchPoints": touched}
            )

    def be_wide(self, width):
        size = dict(width=width, height=900, deviceScaleFactor=1, mobile=width <= PHONE)
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def width(self):
        """Of all that is there; of no more than the screen nothing has to be scrolled sideways."""
        return self.run("return document.documentElement.scrollWidth")


def sentences():
    """What the pages begin with."""
    return [german for german, _ in corpus()["validation"][:4]]
