// Checks that every rule of docs/protocol.md is cited by a test title, and that every cited rule exists.

import path from 'node:path'

import { compareRules, findCitedRules, findDefinedRules } from './rules.ts'

const root = path.dirname(import.meta.dir)
const protocolPage = 'docs/protocol.md'

// The contract suites of packages/testing contain titles too; test files run them.
const patterns = ['{packages,apps,test}/**/*.test.ts', 'packages/testing/src/**/*.ts']

async function readCitations(): Promise<string[]> {
  const files = new Set(patterns.flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: root })]))
  const sources = [...files].filter((file) => !file.includes('node_modules/'))
  const texts = await Promise.all(sources.map(async (file) => Bun.file(path.join(root, file)).text()))
  return texts.flatMap(findCitedRules)
}

async function main(): Promise<number> {
  const page = Bun.file(path.join(root, protocolPage))
  if (!(await page.exists())) {
    console.error(`Cannot check rules: ${protocolPage} does not exist`)
    return 1
  }
  const defined = findDefinedRules(await page.text())
  if (defined.length === 0) {
    console.error(`Cannot check rules: ${protocolPage} defines none`)
    return 1
  }
  const report = compareRules(defined, await readCitations())
  for (const id of report.untested) console.error(`[${id}] is cited by no test title`)
  for (const id of report.undefined)
    console.error(`[${id}] is cited by a test title and not defined in ${protocolPage}`)
  for (const id of report.repeated) console.error(`[${id}] is defined more than once in ${protocolPage}`)
  const problems = report.untested.length + report.undefined.length + report.repeated.length
  if (problems === 0) console.log(`${defined.length} rules, all cited by tests`)
  return problems === 0 ? 0 : 1
}

process.exitCode = await main()
