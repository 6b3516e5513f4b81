// Shows one dashboard at a time: #service, #saturation, ...

// The grid of Grafana: 24 columns, rows of 30 pixels, 8 pixels in between.
const COLUMNS = 24;
const ROW = 30;
const MARGIN = 8;

function place(node, { x, y, w, h }, width) {
  const column = width / COLUMNS;
  Object.assign(node.style, {
    left: `${x * column}px`,
    top: `${y * (ROW + MARGIN)}px`,
    width: `${w * column - MARGIN}px`,
    height: `${h * (ROW + MARGIN) - MARGIN}px`,
  });
}

function drawPanel(panel, grid) {
  const isRow = panel.type === "row";
  const box = element("section", isRow ? "row" : "panel", isRow ? panel.title : undefined);
  place(box, panel.gridPos, grid.clientWidth);
  grid.append(box);
  if (isRow) return;
  const title = element("h2", "", panel.title);
  title.title = panel.description ?? "";
  box.append(title);
  const draw = DRAW[panel.type];
  const empty = !seriesOf(panel).some(hasValue);
  if (!draw) box.append(element("div", "empty", `Panels of type ${panel.type} are not drawn here`));
  else if (empty && panel.type !== "stat") box.append(element("div", "empty", "No data"));
  else draw(panel, box);
}

const withoutData = (board) =>
  board.panels.filter((panel) => panel.type !== "row" && !seriesOf(panel).some(hasValue)).map((panel) => panel.title);

function show() {
  const board = DATA.dashboards.find((one) => `#${one.name}` === location.hash) ?? DATA.dashboards[0];
  document.title = board.title;
  const tabs = document.getElementById("tabs");
  tabs.replaceChildren(
    ...DATA.dashboards.map((one) => {
      const tab = element("a", one === board ? "selected" : "", one.title.replace("chart-index: ", ""));
      tab.href = `#${one.name}`;
      return tab;
    }),
  );
  const grid = document.getElementById("grid");
  grid.replaceChildren();
  const bottom = Math.max(...board.panels.map((panel) => panel.gridPos.y + panel.gridPos.h));
  grid.style.height = `${bottom * (ROW + MARGIN)}px`;
  board.panels.forEach((panel) => drawPanel(panel, grid));
  const missing = withoutData(board);
  const link = document.getElementById("missing");
  link.textContent = missing.length > 0 ? `${missing.length} without data` : "";
  link.onclick = (event) => {
    event.preventDefault();
    document.getElementById("missing-panels").scrollIntoView();
  };
  showMissing();
}

function showMissing() {
  const footer = document.getElementById("missing-panels");
  const list = element("ul");
  for (const board of DATA.dashboards) {
    for (const title of withoutData(board)) list.append(element("li", "", `${board.title}: ${title}`));
  }
  footer.replaceChildren(element("h2", "", "Panels without data"), list.children.length > 0 ? list : "None");
}

const end = new Date(DATA.end * 1000);
document.getElementById("period").textContent = `${DATA.range} up to ${end.toLocaleString("en-GB")}`;
addEventListener("hashchange", show);
addEventListener("resize", show);
show();
if (DATA.every) setTimeout(() => location.reload(), DATA.every * 1000);
