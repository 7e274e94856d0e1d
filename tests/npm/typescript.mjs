// Reads texts of TypeScript from stdin, as a JSON array, and tells what the compiler has against
// each: an array of arrays of sentences. Each text is a module of its own, all in one program.

import { readFileSync } from 'node:fs';
import ts from 'typescript';

// What declarations lean on; the real library costs a second and adds nothing here.
const LIBRARY = `
interface Array<T> { length: number; [index: number]: T }
interface Promise<T> { then: T }
interface Boolean {} interface CallableFunction {} interface Function {} interface IArguments {}
interface NewableFunction {} interface Number {} interface Object {} interface RegExp {} interface String {}
type Record<K extends string, T> = { [P in K]: T };
`;

const texts = JSON.parse(readFileSync(0, 'utf8'));
const files = new Map([['/library.d.ts', LIBRARY]]);
texts.forEach((text, index) => files.set(`/${index}.ts`, `${text}\nexport {};\n`));

const parsed = new Map();
const host = {
  fileExists: (name) => files.has(name),
  readFile: (name) => files.get(name),
  getSourceFile(name, options) {
    if (!files.has(name)) return undefined;
    if (!parsed.has(name)) parsed.set(name, ts.createSourceFile(name, files.get(name), options, true));
    return parsed.get(name);
  },
  getDefaultLibFileName: () => '/library.d.ts',
  getCurrentDirectory: () => '/',
  getCanonicalFileName: (name) => name,
  useCaseSensitiveFileNames: () => true,
  getNewLine: () => '\n',
  writeFile() {},
};
const options = { noLib: true, noEmit: true, strict: true, target: ts.ScriptTarget.Latest, types: [] };
const program = ts.createProgram([...files.keys()], options, host);
const said = (list) => list.map((each) => ts.flattenDiagnosticMessageText(each.messageText, ' '));
const verdicts = texts.map((_, index) => {
  const file = program.getSourceFile(`/${index}.ts`);
  const syntax = program.getSyntacticDiagnostics(file);
  return said(syntax.length ? syntax : program.getSemanticDiagnostics(file));
});
console.log(JSON.stringify(verdicts));
