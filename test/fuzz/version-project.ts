import { VersionFaults } from './version-faults.ts'

/** A package with a dependency that has a program, a build step and a test; installed without a network. */
const PROJECT = `
mkdir -p project/dependency/bin project/src && cd project
cat > dependency/package.json <<'F'
{ "name": "upper", "version": "1.0.0", "type": "module", "exports": "./index.js", "bin": { "upper": "bin/upper.js" } }
F
echo 'export const upper = (text) => text.toUpperCase()' > dependency/index.js
printf '#!/usr/bin/env node\\nimport { upper } from "../index.js"\\nprocess.stdout.write(upper(process.argv[2]))\\n' > dependency/bin/upper.js
chmod +x dependency/bin/upper.js
cat > package.json <<'F'
{ "name": "project", "type": "module", "dependencies": { "upper": "file:./dependency" },
  "scripts": { "build": "mkdir -p out && upper hello > out/hello.txt && cp src/main.js out/", "test": "node --test out/" } }
F
echo 'import { upper } from "upper"; import { readFileSync } from "node:fs"; import test from "node:test"; import assert from "node:assert"; test("is built", () => assert.equal(readFileSync("out/hello.txt", "utf8"), upper("hello")))' > src/main.js
npm install --offline --no-audit --no-fund && npm run build && cp out/main.js out/main.test.js && git init -q . 2>/dev/null; npm test
`
const AGAIN =
  'cd project && npm ls >/dev/null && npm run build && npm test && rm -rf node_modules && npm install --offline --no-audit --no-fund && npm run build && npm test'

/** npm on a busy machine. */
const PROJECT_MS = 300_000

/** Saves, loses and restores a real project some times; each time it is built and tested from what was restored. */
export async function cycleProject(cycles: number, onCycle: (done: number) => void): Promise<void> {
  await using faults = await VersionFaults.open()
  await expectTested(faults, PROJECT)
  for (let done = 1; done <= cycles; done += 1) {
    await faults.request('POST', '/stop')
    faults.loseDisk()
    await expectTested(faults, AGAIN)
    onCycle(done)
  }
}

async function expectTested(faults: VersionFaults, script: string): Promise<void> {
  const output = await faults.shell(`(${script}) 2>&1 && echo PASSED`, PROJECT_MS)
  if (!output.endsWith('PASSED\n')) throw new Error(`The project failed:\n${output.slice(-2000)}`)
}
