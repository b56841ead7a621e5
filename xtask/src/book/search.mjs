// Reads searches from stdin, one on each line, and prints the addresses of the first results of each, as JSON. The index, the
// options and the program that searches are those of the book's pages.
import { readFileSync, readdirSync } from 'node:fs';
import vm from 'node:vm';

const folder = process.argv[2];
const read = (start) => {
  const name = readdirSync(folder).find((file) => file.startsWith(start) && file.endsWith('.js'));
  return readFileSync(`${folder}/${name}`, 'utf8');
};
const page = vm.createContext({ console });
vm.runInContext('var window = this; window.search = {};', page);
vm.runInContext(read('elasticlunr-'), page);
vm.runInContext(read('searchindex-'), page);
const { index, doc_urls, search_options } = page.window.search;
const loaded = page.elasticlunr.Index.load(index);
const searches = readFileSync(0, 'utf8').split('\n').filter(Boolean);
const first = (words) => loaded.search(words, search_options).slice(0, 10).map((found) => doc_urls[found.ref]);
console.log(JSON.stringify(searches.map(first)));
