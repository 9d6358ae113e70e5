// Elements, made of names and text. Text is always text: nothing here reads HTML.

const SVG = "http://www.w3.org/2000/svg";

// An element of HTML: h("button", { id: "go", onclick }, "Go", child). An attribute that is true is
// there without a value; one that is false, null or undefined is not there. Children that are null
// or false are left out.
export function h(tag, attributes = {}, ...children) {
  return furnished(document.createElement(tag), attributes, children);
}

// The same, of SVG.
export function svg(tag, attributes = {}, ...children) {
  return furnished(document.createElementNS(SVG, tag), attributes, children);
}

function furnished(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), value);
    } else if (name === "style" && value) {
      element.style.cssText = value; // an attribute would need a policy that lets any style in
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...present(children.flat()));
  return element;
}

function present(children) {
  return children.filter((child) => child !== null && child !== false);
}

// New contents for an element. What had the focus within it has it afterwards, found by its id, a box
// of text at the same place.
export function refill(element, children) {
  const active = document.activeElement;
  const id = element.contains(active) && active.id;
  const place = active.type === "text" && [active.selectionStart, active.selectionEnd];
  element.replaceChildren(...present(children));
  const again = id && document.getElementById(id);
  if (again) {
    again.focus({ preventScroll: true });
    if (place) {
      again.setSelectionRange(...place);
    }
  }
}

// A choice of one among several (radio buttons): one stop of the tab key, arrow keys choose.
// `items`: { value, content, label, ...attributes }; `choose` is called with a value.
export function choice(id, label, items, chosen, choose, attributes = {}) {
  const buttons = items.map(({ value, content, label, ...more }, i) =>
    h(
      "button",
      {
        id: `${id}-${value}`,
        type: "button",
        role: "radio",
        "aria-checked": String(value === chosen),
        "aria-label": label,
        tabindex:
          value === chosen || (i === 0 && !items.some((item) => item.value === chosen)) ? 0 : -1,
        onclick: () => choose(value),
        ...more,
      },
      content,
    ),
  );
  const onkeydown = with_arrows(buttons, (button) => button.click());
  return h(
    "div",
    { id, role: "radiogroup", "aria-label": label, onkeydown, ...attributes },
    buttons,
  );
}

// An item of a choice that is a word.
export function worded(value, word) {
  return { value, label: word, content: word };
}

// Arrow keys, Home and End go among elements, and `arrive` is told of each that is reached.
// `next_to(at, key)` says which one an arrow leads to.
export function with_arrows(elements, arrive, next_to = in_a_row) {
  return (event) => {
    const at = elements.findIndex((element) => element.contains(event.target));
    const ends = { Home: 0, End: elements.length - 1 };
    const reached = at >= 0 && elements[ends[event.key] ?? next_to(at, event.key)];
    if (reached) {
      event.preventDefault();
      reached.focus();
      arrive(reached);
    }
  };
}

function in_a_row(at, key) {
  return at + { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key];
}
