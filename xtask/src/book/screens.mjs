// Opens pages of the book in Chromium: two themes, two widths. Takes a picture of each, and prints what is wrong, as JSON.
//
// node screens.mjs BOOK PICTURES PAGE...    with the packages of Studio in the folder PACKAGES, and the browser CHROMIUM
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';

const [book, pictures, ...names] = process.argv.slice(2);
const { chromium } = createRequire(`${process.env.PACKAGES}/`)('playwright-core');
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
const sizes = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } };
mkdirSync(pictures, { recursive: true });

/** What a reader would see as broken. Runs in the page. */
function faultsOfPage() {
  const faults = [];
  const { scrollWidth, clientWidth } = document.scrollingElement;
  if (scrollWidth > clientWidth) faults.push(`is ${scrollWidth} wide and its window ${clientWidth}`);
  const main = document.querySelector('main');
  for (const image of main.querySelectorAll('img')) {
    if (!image.complete || image.naturalWidth === 0) faults.push(`does not show ${image.getAttribute('src')}`);
  }
  for (const svg of main.querySelectorAll('.diagram svg')) {
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    if (scale < 0.9) faults.push(`shows a diagram at ${Math.round(scale * 100)} % of its size`);
    for (const text of svg.querySelectorAll('text')) {
      if (getComputedStyle(text).fill === getComputedStyle(document.body).backgroundColor) faults.push('hides letters');
    }
  }
  if (main.innerText.trim().length < 200) faults.push('has hardly any text');
  return faults;
}

const faults = [];
for (const [size, viewport] of Object.entries(sizes)) {
  for (const theme of ['light', 'dark']) {
    const context = await browser.newContext({ viewport, colorScheme: theme, reducedMotion: 'reduce' });
    const page = await context.newPage();
    let name;
    page.on('pageerror', (error) => faults.push(`${name} (${size}, ${theme}): ${error.message}`));
    page.on('request', (request) => {
      const url = request.url();
      if (!/^(file|data|blob):/.test(url)) faults.push(`${name} asks for ${url}`);
    });
    for (name of names) {
      await page.goto(`file://${book}/${name}`);
      await page.evaluate(() => document.fonts.ready);
      const found = await page.evaluate(faultsOfPage);
      faults.push(...found.map((fault) => `${name} (${size}, ${theme}) ${fault}`));
      const file = name.replace(/^docs\//, '').replaceAll('/', '-').replace('.html', '');
      await page.screenshot({ path: `${pictures}/${file}-${size}-${theme}.png` });
    }
    await context.close();
  }
}
await browser.close();
console.log(JSON.stringify(faults));
