'use strict';
// Shows one run in detail, or several over time. Each run is a document of benchmarks/results.
const runs = JSON.parse(document.getElementById('data').textContent);
const page = document.getElementById('page');
const COLORS = ['#1f77b4', '#d62728', '#2ca02c', '#9467bd', '#ff7f0e', '#17becf', '#8c564b', '#e377c2'];

function add(parent, name, text) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  return parent.appendChild(element);
}

function number(value, digits) {
  return value === null || value === undefined ? '–' : value.toLocaleString('en', {
    minimumFractionDigits: digits, maximumFractionDigits: digits,
  });
}

function table(parent, head, rows) {
  const element = add(parent, 'table');
  const line = add(element, 'tr');
  for (const cell of head) add(line, 'th', cell);
  for (const row of rows) {
    const line = add(element, 'tr');
    for (const cell of row) add(line, 'td', cell);
  }
}

function series(names, points) {
  return names.map((name, index) => ({
    label: name,
    stroke: COLORS[index % COLORS.length],
    width: 2,
    points: { show: points },
    spanGaps: true,
  }));
}

function plot(parent, title, x, y, data, names, points) {
  new uPlot({
    title,
    width: 490,
    height: 300,
    scales: { x: x.scale, y: y.scale },
    axes: [{ label: x.label, values: x.values }, { label: y.label, size: 70 }],
    series: [{ label: x.label, value: (plot, value) => (x.text || String)(value) }, ...series(names, points)],
  }, data, parent);
}

// The values of several lines at the union of their x, as uPlot takes them.
function joined(lines) {
  const xs = [...new Set(lines.flatMap((line) => line.map(([x]) => x)))].sort((a, b) => a - b);
  const ys = lines.map((line) => {
    const values = new Map(line);
    return xs.map((x) => values.get(x) ?? null);
  });
  return [xs, ...ys];
}

function comparison(result) {
  add(page, 'h2', `${result.scenario}: ceiling`);
  add(page, 'p', `Medians of ${result.rounds} rounds of ${result.seconds} s over ${result.connections} connections. ` +
    'Ratios to the first target in the same round.');
  const head = ['target', 'requests/s', 'server µs', 'Redis µs', 'PostgreSQL µs', 'bytes', 'void rounds',
    'requests/s : 1', 'bytes/s : 1', 'server : 1', 'all : 1'];
  table(page, head, result.targets.map((target) => [
    target.name, (target.is_void ? '≥ ' : '') + number(target.requests_per_second, 0), number(target.cpu_us.server, 1), number(target.cpu_us.redis, 1),
    number(target.cpu_us.postgres, 1), number(target.bytes_per_response, 0), number(target.void, 0),
    number(target.ratios.requests_per_second, 2), number(target.ratios.bytes_per_second, 2),
    number(target.ratios.server_cpu, 2), number(target.ratios.total_cpu, 2),
  ]));
  const plots = add(page, 'div');
  plots.className = 'plots';
  const names = result.targets.map((target) => target.name);
  const rounds = (value) => joined(result.targets.map(
    (target) => target.rounds.map((round, index) => [index + 1, value(round)])));
  const x = { label: 'round', scale: { time: false } };
  plot(plots, 'Requests per second', x, { label: 'requests/s', scale: { range: zero } },
    rounds((round) => round.requests_per_second), names, true);
  plot(plots, 'CPU time per request', x, { label: 'µs', scale: { range: zero } },
    rounds((round) => Object.values(round.cpu_us).reduce((sum, time) => sum + time, 0)), names, true);
}

function zero(plot, min, max) {
  return [0, max * 1.1 || 1];
}

function latency(result) {
  add(page, 'h2', `${result.scenario}: latency`);
  add(page, 'p', `${number(result.rate, 0)} requests/s for ${result.seconds} s in each round, open loop, ` +
    'from the intended start of each request.');
  const head = ['target', 'p50 ms', 'p99 ms', 'p99.9 ms', 'p99 : 1', 'void rounds', 'repeated', 'late starts', 'problems', 'responses'];
  table(page, head, result.targets.map((target) => [
    target.name, number(target.p50_us / 1000, 2), number(target.p99_us / 1000, 2), number(target.p999_us / 1000, 2),
    number(target.p99_ratio, 2), number(target.void, 0), number(target.repeated ?? 0, 0),
    number(target.rounds.reduce((sum, round) => sum + round.late, 0), 0), number(target.problems, 0),
    JSON.stringify(target.rounds.map((round) => round.statuses)[0]),
  ]));
  const plots = add(page, 'div');
  plots.className = 'plots';
  // As in plots of HDR histograms: 1 / (1 - quantile) on a logarithmic scale.
  const lines = result.targets.map((target) => target.rounds[0].accepted.quantiles
    .filter(([quantile]) => quantile < 1)
    .map(([quantile, latency]) => [1 / (1 - quantile), latency / 1000]));
  const percentile = (value) => `${+(100 * (1 - 1 / value)).toPrecision(6)} %`;
  plot(plots, 'Latency by percentile, first round',
    { label: 'percentile', scale: { time: false, distr: 3 }, values: (plot, values) => values.map(percentile), text: percentile },
    { label: 'ms', scale: { distr: 3 } }, joined(lines), result.targets.map((target) => target.name), false);
}

function describe(run) {
  const { machine } = run;
  add(page, 'p', `${run.date} UTC, commit ${run.commit}, ${run.form} form, ${number(run.charts, 0)} charts. ` +
    `${machine.processor}, ${machine.cores} cores, ${number(machine.memory_bytes / 2 ** 30, 0)} GiB, Linux ${machine.kernel}. ` +
    `Servers on the cores ${machine.server_cores.join(', ')}, generator on ${machine.generator_cores.join(', ')}.`);
  add(page, 'p', Object.values(run.software).join('; '));
}

// One line for each target of a scenario, over the dates of the runs.
function history(title, results, value, label) {
  const dated = runs.map((run) => [Date.parse(`${run.date.replace(' ', 'T')}Z`) / 1000, run]);
  const scenarios = [...new Set(runs.flatMap((run) => run[results].map((result) => result.scenario)))];
  add(page, 'h2', title);
  const plots = add(page, 'div');
  plots.className = 'plots';
  for (const scenario of scenarios) {
    const found = dated.flatMap(([date, run]) => run[results]
      .filter((result) => result.scenario === scenario).map((result) => [date, result]));
    const names = [...new Set(found.flatMap(([, result]) => result.targets.map((target) => target.name)))];
    const lines = names.map((name) => found.flatMap(([date, result]) => result.targets
      .filter((target) => target.name === name).map((target) => [date, value(target)])));
    plot(plots, scenario, { label: 'date (UTC)', scale: {} }, { label, scale: { range: zero } }, joined(lines), names, true);
  }
}

add(page, 'h1', 'Load tests of chart-index');
if (runs.length === 1) {
  describe(runs[0]);
  runs[0].comparisons.forEach(comparison);
  runs[0].latencies.forEach(latency);
  add(page, 'h2', 'Instructions per request');
  add(page, 'p', 'Of the service, in user space, counted by callgrind.');
  table(page, ['scenario', 'target', 'instructions'], runs[0].instructions.map((count) => [
    count.scenario, count.target, number(count.instructions, 0),
  ]));
} else {
  table(page, ['run', 'form', 'commit', 'processor', 'cores'], runs.map((run) => [
    run.date, run.form, run.commit, run.machine.processor, number(run.machine.cores, 0),
  ]));
  history('CPU time of the server, of the first target’s', 'comparisons', (target) => target.ratios.server_cpu, 'ratio');
  history('Requests per second, of the first target’s', 'comparisons', (target) => target.ratios.requests_per_second, 'ratio');
  history('p99', 'latencies', (target) => target.p99_us === null ? null : target.p99_us / 1000, 'ms');
}
