// Looks at pages in headless Chromium: a picture of each in three widths, light and dark, and what axe-core finds.
//
//     npm install --prefix build/browser playwright-core axe-core
//     node tools/check_pages.mjs build/pictures build/site/index.html build/site/migrating.html report/report.html
//
// CHROMIUM names the browser (/usr/bin/chromium), WIDTHS and HEIGHT other sizes (WIDTHS=1100 HEIGHT=760 for
// docs/figures/report.png). Ends with 1 where axe finds a violation.
import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(resolve(process.env.BROWSER_MODULES ?? "build/browser/package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const widths = (process.env.WIDTHS ?? "390,820,1440").split(",").map(Number);
const height = Number(process.env.HEIGHT ?? 900);
const [pictures, ...pages] = process.argv.slice(2);
mkdirSync(pictures, { recursive: true });
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--allow-file-access-from-files"],
});
let violations = 0;
for (const page of pages) {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of widths) {
      const context = await browser.newContext({ colorScheme, viewport: { width, height }, bypassCSP: true });
      const tab = await context.newPage();
      await tab.goto(pathToFileURL(resolve(page)).href);
      await tab.waitForTimeout(300);
      await tab.screenshot({ path: `${pictures}/${basename(page, ".html")}-${colorScheme}-${width}.png` });
      const overflow = await tab.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (overflow > 0) console.log(`${page} ${colorScheme} ${width}: ${overflow} pixels wider than the window`);
      await tab.evaluate(axe);
      const found = (await tab.evaluate(() => window.axe.run())).violations;
      violations += found.length;
      for (const { id, impact, nodes } of found) {
        console.log(`${page} ${colorScheme} ${width}: ${id} (${impact}), ${nodes.length} elements, as ${nodes[0].html.slice(0, 200)}`);
        console.log(`    ${nodes[0].failureSummary.replaceAll("\n", " ").slice(0, 300)}`);
      }
      await context.close();
    }
  }
}
await browser.close();
console.log(`${violations} violations`);
process.exit(violations ? 1 : 0);
