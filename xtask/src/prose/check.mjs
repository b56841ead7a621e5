// Reads { words, off, texts } as JSON and prints what Harper finds in the texts, as JSON.
import { readFileSync } from 'node:fs';
import { Dialect, LocalLinter } from 'harper.js';
import { binary } from 'harper.js/binary';

const { words, off, texts } = JSON.parse(readFileSync(0, 'utf8'));
const linter = new LocalLinter({ binary, dialect: Dialect.British });
const rules = await linter.getLintConfig();
for (const rule of off) {
  if (!(rule in rules)) {
    console.error(`Harper has no rule \`${rule}\``);
    process.exit(1);
  }
  rules[rule] = false;
}
await linter.setLintConfig(rules);
await linter.importWords(words);

const found = [];
for (const { path, text, language } of texts) {
  // Which rule spoke takes twice as long to learn, and few texts have a fault.
  if ((await linter.lint(text, { language })).length === 0) continue;
  const lints = await linter.organizedLints(text, { language });
  for (const [rule, list] of Object.entries(lints)) {
    for (const lint of list) {
      // Harper counts characters, JavaScript counts halves of some.
      const before = [...text].slice(0, lint.span().start);
      const suggestions = lint.suggestions().map((one) => one.get_replacement_text());
      found.push({
        path,
        line: before.filter((c) => c === '\n').length + 1,
        rule,
        text: lint.get_problem_text(),
        message: lint.message(),
        suggestion: suggestions[0] ?? '',
      });
    }
  }
}
console.log(JSON.stringify(found));
