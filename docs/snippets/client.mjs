// Says which charts of a folder an index knows, and where they are from:
//
// npm install chart-index && node client.mjs https://charts.example ~/songs
import { ChartIndex } from "chart-index";
import { hashFolder } from "chart-index/node";

const [base, folder] = process.argv.slice(2);
const index = new ChartIndex(base, { userAgent: "example-client/1.0 (me@example.org)" });

const charts = [];
for await (const chart of hashFolder(folder)) {
  if (chart.hash) charts.push(chart);
  else console.error(`${chart.file}: ${chart.reason}`);
}
const items = await index.lookupMany(charts.map(({ hash }) => hash), { include: ["links"] });
for (const [number, item] of items.entries()) {
  const pages = item.status === "known" ? item.sources.map(({ url }) => url) : [];
  console.log(item.status, charts[number].file, ...pages);
}
