// The pages for authors of clients: copies code, and sends the requests of examples.

const MAX_SHOWN = 20_000;
const HEADERS = ["content-type", "cache-control", "etag", "retry-after"];

/** A button before some code that copies it. */
function addCopy(code) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "copy", textContent: "Copy" });
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent.trimEnd());
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Press Ctrl+C";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  code.before(button);
}

/** Shows the response to the request of a link below it. */
async function send(link) {
  const paragraph = link.closest("p");
  const next = paragraph.nextElementSibling;
  const box = next?.matches(".response") ? next : Object.assign(document.createElement("pre"), { className: "response", tabIndex: 0 });
  box.setAttribute("role", "status");
  paragraph.after(box);
  box.textContent = "Sending …";
  try {
    // These may lead to another site; a browser does not say where.
    const leaves = /^\/go\/|\/rox$/.test(link.pathname);
    const response = await fetch(link.href, { redirect: leaves ? "manual" : "follow" });
    box.textContent = response.type === "opaqueredirect" ? "A redirect to another site." : await described(response);
  } catch {
    box.textContent = "The index does not respond.";
  }
}

async function described(response) {
  const headers = HEADERS.filter((name) => response.headers.has(name)).map((name) => `${name}: ${response.headers.get(name)}`);
  const head = [`${response.status} ${response.statusText}`, ...headers].join("\n");
  if (!/json/.test(response.headers.get("content-type"))) {
    return `${head}\n\n${(await response.arrayBuffer()).byteLength.toLocaleString("en")} bytes`;
  }
  const text = JSON.stringify(await response.json(), null, 2);
  return `${head}\n\n${text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}\n…` : text}`;
}

for (const code of document.querySelectorAll(".docs pre")) addCopy(code);
for (const link of document.querySelectorAll(".docs a:is([href^='/api/'], [href^='/go/'])")) {
  if (!link.textContent.startsWith("Send ")) continue;
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    send(link);
  });
}
// Links to sections from when the reference was one page.
const anchor = location.hash.slice(1);
if (location.pathname === "/docs" && anchor && !document.getElementById(anchor)) {
  const moved = document.querySelector(`.documents nav a[data-anchor="${CSS.escape(anchor)}"]`);
  if (moved) location.replace(moved.href);
}
