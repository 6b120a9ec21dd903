// Choosing an output, a feature and a group; values at the place under the pointer.
"use strict";
const all = (selector, within) => [...within.querySelectorAll(selector)];

// Show the part that is chosen, or all of them.
function show(select, parts) {
  select.addEventListener("change", () => parts.forEach((part, k) => {
    part.hidden = select.value !== "" && Number(select.value) !== k;
    part.open = part.open || (select.value !== "" && !part.hidden);
  }));
}

function read(reader) {
  const body = reader.closest(".body"), place = reader.querySelector("input");
  const pictures = all("svg[data-places]", body), group = reader.querySelector("select");
  const table = body.querySelector("details table"), lines = all("tbody tr", table);
  const heads = all("thead th", table).map(head => head.textContent);
  const N_OWN = heads.length - (group ? group.options.length - 1 : 0);

  function tell() {
    const k = Number(place.value), values = [...lines[k].children].map(cell => cell.textContent);
    const chosen = group && group.value !== "" ? N_OWN + Number(group.value) : -1;
    const said = heads.map((head, j) => `${head}: ${values[j]}`)
      .filter((text, j) => j < N_OWN || chosen === -1 || j === chosen);
    reader.querySelector("output").textContent = said.join("; ");
    place.setAttribute("aria-valuetext", values[0]);
    pictures.forEach(svg => {
      const at = svg.dataset.places.split(" ")[k], box = svg.viewBox.baseVal;
      const line = svg.querySelector(".cursor") ||
        svg.appendChild(document.createElementNS(svg.namespaceURI, "path"));
      line.setAttribute("class", "cursor");
      line.setAttribute("d", svg.dataset.along === "x" ? `M${at} 0V${box.height}` : `M0 ${at}H${box.width}`);
    });
  }

  pictures.forEach(svg => svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
    const at = scale * (svg.dataset.along === "x" ? event.clientX - box.left : event.clientY - box.top);
    const away = svg.dataset.places.split(" ").map(other => Math.abs(other - at));
    place.value = away.indexOf(Math.min(...away));
    tell();
  }));
  place.addEventListener("input", tell);
  if (group) group.addEventListener("change", () => {
    pictures.forEach(svg => all(".group", svg).forEach(line => line.setAttribute("visibility",
      group.value === "" || line.classList.contains("g" + group.value) ? "visible" : "hidden")));
    tell();
  });
  tell();
}

all("select.outputs", document).forEach(select => show(select, all("details.output", document)));
all("select.features", document).forEach(
  select => show(select, all("details.feature", select.closest("section"))));
all(".reader", document).forEach(read);
