/* The live figure of "The model in pictures". It draws what make_live_figure.py has computed. */
"use strict";

(() => {
  const figure = document.getElementById("live");
  const data = window.polyfidLive;
  const find = (name) => figure.querySelector(`[data-live="${name}"]`);
  const { side, reach } = data;

  const steps = Object.fromEntries([...data.letters].map((letter, k) => [letter, k]));
  const decode = (text) => Float32Array.from(text, (c) => steps[c] / (data.letters.length - 1));

  const colour = (name) => getComputedStyle(figure).getPropertyValue(`--live-${name}`).trim();
  const rgb = (text) => [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16));

  /** Colours of 0 to 1 in steps: to one end and, from the middle, perhaps to another one. */
  function ramp(low, high) {
    const [middle, one, other] = [colour("middle"), low, high].map(rgb);
    return Array.from({ length: 256 }, (_, k) => {
      const x = low === high ? k / 255 : k / 127.5 - 1;
      const end = x < 0 ? one : other;
      return middle.map((m, c) => m + 0.8 * Math.abs(x) * (end[c] - m));
    });
  }

  /** A value between the points of a grid; column and row from 0 to side - 1. */
  function between(grid, column, row) {
    const i = Math.min(Math.floor(column), side - 2);
    const j = Math.min(Math.floor(row), side - 2);
    const [u, v, k] = [column - i, row - j, j * side + i];
    const below = (1 - u) * grid[k] + u * grid[k + 1];
    const above = (1 - u) * grid[k + side] + u * grid[k + side + 1];
    return (1 - v) * below + v * above;
  }

  const clip = (k) => Math.min(Math.max(k, 0), side - 1);

  /** A grid averaged over neighbours, so that the steps of its letters do not show in a line. */
  function smooth(grid) {
    const at = (i, j) => grid[clip(j) * side + clip(i)];
    const row = (i, j) => at(i - 1, j) + 2 * at(i, j) + at(i + 1, j);
    return grid.map((_, k) => {
      const [i, j] = [k % side, Math.floor(k / side)];
      return (row(i, j - 1) + 2 * row(i, j) + row(i, j + 1)) / 16;
    });
  }

  /** The line along which a grid is one half: two points for each cell that it crosses. */
  function line(rough) {
    const [grid, parts] = [smooth(rough), []];
    for (let j = 0; j < side - 1; j++) {
      for (let i = 0; i < side - 1; i++) {
        const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]];
        const values = corners.map(([a, b]) => grid[b * side + a] - 0.5);
        const crossed = [];
        corners.forEach(([a, b], k) => {
          const [next, p, q] = [corners[(k + 1) % 4], values[k], values[(k + 1) % 4]];
          const t = p / (p - q);
          if (p > 0 !== q > 0) crossed.push([a + t * (next[0] - a), b + t * (next[1] - b)]);
        });
        for (let k = 0; k + 1 < crossed.length; k += 2) parts.push(crossed.slice(k, k + 2));
      }
    }
    return parts;
  }

  /** Draw a map, the lines and the points; `cheap` says which cheap labels are wrong, if any. */
  function draw(canvas, grid, isDifference, boundary, count, cheap) {
    const width = Math.round(canvas.clientWidth * (window.devicePixelRatio || 1));
    canvas.width = canvas.height = width;
    const context = canvas.getContext("2d");
    const classes = [colour("first"), colour("second")];
    const [ink, paper] = [colour("ink"), colour("paper")];
    const colours = isDifference ? ramp(colour("differ"), colour("differ")) : ramp(...classes);

    const image = context.createImageData(width, width);
    const scale = (side - 1) / (width - 1);
    for (let y = 0, k = 0; y < width; y++) {
      for (let x = 0; x < width; x++, k += 4) {
        const p = between(grid, x * scale, (width - 1 - y) * scale);
        image.data.set(colours[Math.round(255 * p)], k);
        image.data[k + 3] = 255;
      }
    }
    context.putImageData(image, 0, 0);

    const unit = width / canvas.clientWidth;
    const small = canvas.clientWidth < 250 ? 0.8 : 1;
    const place = ([x, y]) => [((x + reach) / (2 * reach)) * width, ((reach - y) / (2 * reach)) * width];
    context.lineJoin = context.lineCap = "round";
    context.strokeStyle = ink;
    context.lineWidth = 2 * unit;
    context.beginPath();
    for (const [a, b] of line(boundary)) {
      const [from, to] = [a, b].map(([i, j]) => [i / scale, width - 1 - j / scale]);
      context.moveTo(...from);
      context.lineTo(...to);
    }
    context.stroke();

    context.lineWidth = 1.5 * unit;
    context.setLineDash([6 * unit, 5 * unit]);
    context.beginPath();
    for (const point of data.curve) context.lineTo(...place(point));
    context.stroke();
    context.setLineDash([]);

    const disc = (point, radius) => {
      context.beginPath();
      context.arc(...place(point), radius * unit * small, 0, 2 * Math.PI);
    };
    if (cheap) {
      data.points.cheap.forEach((point, k) => {
        const shown = classes[Number(data.classes.cheap[k] !== cheap[k])];
        if (!cheap[k]) {
          disc(point, 3.2);
          context.fillStyle = shown;
          context.fill();
          context.strokeStyle = paper;
          context.lineWidth = 0.8 * unit;
          context.stroke();
          return;
        }
        const [x, y] = place(point);
        const r = 3.2 * unit * small;
        for (const [style, thick] of [[paper, 4], [shown, 2.4]]) {
          context.strokeStyle = style;
          context.lineWidth = thick * unit * small;
          context.beginPath();
          context.moveTo(x - r, y - r);
          context.lineTo(x + r, y + r);
          context.moveTo(x - r, y + r);
          context.lineTo(x + r, y - r);
          context.stroke();
        }
      });
    }
    data.points.trusted.slice(0, count).forEach((point, k) => {
      disc(point, 6.5);
      context.fillStyle = classes[Number(data.classes.trusted[k])];
      context.fill();
      context.strokeStyle = paper;
      context.lineWidth = 4.5 * unit * small;
      context.stroke();
      context.strokeStyle = ink;
      context.lineWidth = 2 * unit * small;
      context.stroke();
    });
  }

  const titles = {
    trusted: "what a trusted label would be",
    cheap: "what a cheap label would be",
    differ: "where the levels differ",
  };
  const [share, count, place, view] = ["share", "count", "place", "view"].map(find);

  /** Draw and say what the controls ask for. */
  function update() {
    const [wrong, trusted] = [data.shares[share.value], data.counts[count.value]];
    const both = data.together[`${place.value} ${wrong} ${trusted}`];
    const one = data.alone[trusted];
    const limit = (data.points.cheap.length * wrong) / 100;
    const isWrong = data.ranks[place.value].map((rank) => rank < limit);
    const where = place.value === "right" && wrong ? ", all of them to the right" : "";

    share.setAttribute("aria-valuetext", `${wrong} % of the cheap labels are wrong`);
    count.setAttribute("aria-valuetext", `${trusted} trusted labels`);
    find("share-shown").textContent = `${wrong} %`;
    find("count-shown").textContent = trusted;

    const gain = both.right - one.right;
    const size = gain > 9 ? "a lot" : "a little";
    const verdict =
      Math.abs(gain) < 3
        ? "The cheap labels make little difference."
        : gain > 0
          ? `The cheap labels help ${size}.`
          : "The cheap labels do harm.";
    const differing = decode(both.differ).filter((p) => p > 0.5).length / side ** 2;
    const seen =
      view.value === "differ"
        ? ` The model expects the levels to differ on ${Math.round(100 * differing)} % of the map.`
        : "";
    const said =
      `${wrong} % of the cheap labels are wrong${where}, ${trusted} trusted labels: ` +
      `${both.right} % of the points are classified right; with the trusted labels alone ` +
      `${one.right} %. ${verdict}${seen}`;
    if (find("said").textContent !== said) find("said").textContent = said;

    const top = decode(both.trusted);
    const shown = view.value === "trusted" ? top : decode(both[view.value]);
    const isDifference = view.value === "differ";
    const boundary = isDifference ? top : shown;
    draw(find("both"), shown, isDifference, boundary, trusted, isWrong);
    const lone = decode(one.trusted);
    draw(find("alone"), lone, false, lone, trusted, null);
    find("both").setAttribute("aria-label", `Map, from all labels, of ${titles[view.value]}`);
    find("alone").setAttribute("aria-label", "Map, from the trusted labels alone, of what a trusted label would be");
    find("key-differ").hidden = !isDifference;
  }

  [place.value, share.value, count.value] = [
    data.start[0],
    data.shares.indexOf(data.start[1]),
    data.counts.indexOf(data.start[2]),
  ];
  for (const control of [share, count, place, view]) control.addEventListener("input", update);
  figure.hidden = false;
  update();

  /* The width of the window, or light and dark, may change. */
  new ResizeObserver(update).observe(find("both"));
  const theme = { attributes: true, attributeFilter: ["data-theme"] };
  new MutationObserver(update).observe(document.documentElement, theme);
})();
