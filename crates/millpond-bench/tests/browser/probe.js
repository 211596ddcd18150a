// Runs in a copy of the page that only the test has: says what a reader would see, in figures.
const box = (element) => element.getBoundingClientRect();
const overlap = (a, b) =>
  Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
  // Boxes of letters are taller than letters.
  Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
const look = (svg) => {
  const frame = box(svg);
  const texts = [...svg.querySelectorAll("text")];
  const marks = [...svg.querySelectorAll(".bar, .mark, .dot")];
  const overlaps = [];
  texts.forEach((one, index) => {
    for (const other of texts.slice(index + 1)) {
      if (overlap(box(one), box(other))) overlaps.push(`${one.textContent} / ${other.textContent}`);
    }
  });
  const leaves = (element) => {
    const own = box(element);
    return own.left < frame.left - 1 || own.right > frame.right + 1 ||
      own.top < frame.top - 1 || own.bottom > frame.bottom + 1;
  };
  const painted = (element) => {
    const style = getComputedStyle(element);
    return style.fill !== "none" || style.stroke !== "none";
  };
  return {
    label: svg.getAttribute("aria-label"),
    kind: svg.classList[1],
    width: frame.width,
    height: frame.height,
    marks: marks.filter((mark) => mark.getBBox().width > 0 && mark.getBBox().height > 0 && painted(mark)).length,
    lines: [...svg.querySelectorAll(".stroke")].filter((line) => line.getTotalLength() > 20).length,
    overlaps,
    outside: texts.concat(marks).filter(leaves).map((element) => element.textContent || element.outerHTML),
    smallest_text: Math.min(...texts.map((text) => box(text).height)),
  };
};
const seen = {
  window: innerWidth,
  page: document.documentElement.scrollWidth,
  is_dark: matchMedia("(prefers-color-scheme: dark)").matches,
  plots: [...document.querySelectorAll("svg.plot")].map(look),
};
const note = document.createElement("pre");
note.id = "seen";
note.textContent = JSON.stringify(seen);
// The frame around this document is what the test reads.
parent.document.body.append(note);
