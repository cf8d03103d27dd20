// Runs the two commands of the README on a new machine: a minimal Debian with Node, npm and a clone of HEAD, and nothing else.
//
//   npm run fresh                  the product as an ordinary user and as root, then the tests as root
//   npm run fresh -- --product     the product alone
//
// Needs root, debootstrap and the registries of npm and apt; what it downloads is kept in .cache/fresh.

import path from 'node:path'
import { ensureDebian } from './fresh/debian.ts'
import {
  checkFile,
  checkGit,
  checkGitMissing,
  checkPage,
  checkPrompt,
  checkSearch,
  type Product,
  startProduct,
  stopSandbox,
} from './fresh/drive.ts'
import { CLONE, type CommandOptions, FreshRoot, USER } from './fresh/fresh-root.ts'
import { readOptions } from './read-options.ts'
import { ensureSystemPackages } from './system-packages.ts'

const { product: isProductOnly } = readOptions(
  { product: { type: 'boolean', default: false } },
  'npm run fresh -- [--product]',
)

const repository = path.dirname(import.meta.dir)
const cache = path.join(repository, '.cache/fresh')

/** Runs one step and prints its duration; a failure ends the run. */
async function step<T>(title: string, work: () => Promise<T>): Promise<T> {
  const startedMs = performance.now()
  const seconds = (): string => ((performance.now() - startedMs) / 1000).toFixed(0)
  console.error(`…     ${title}`)
  try {
    const result = await work()
    console.error(`ok    ${title}  ${seconds()} s`)
    return result
  } catch (error) {
    console.error(`FAIL  ${title}  ${seconds()} s`)
    throw error
  }
}

function expectLine(output: string, pattern: RegExp): void {
  const lines = output.split('\n').filter((line) => pattern.test(line))
  if (lines.length === 1) return
  throw new Error(`Expected one line with ${pattern}, found ${lines.length}:\n${output}`)
}

/** Checks everything that works without git, as the user that started the product. */
async function drive(root: FreshRoot, product: Product, options: CommandOptions): Promise<void> {
  await step('a prompt in a sandbox', () => checkPrompt(root, product, options))
  await step('a file written and read', () => checkFile(root, product, options))
  await step('content search', () => checkSearch(product))
  await step('git is reported as missing', () => checkGitMissing(product))
  await step('the page', () => checkPage(product))
}

async function tryAsUser(root: FreshRoot): Promise<void> {
  const options = { cwd: USER.clone, asUser: true }
  const product = await step('npm start, as an ordinary user', () => startProduct(root, options))
  expectLine(product.startOutput, /^ +Isolation +none.*bubblewrap is not installed/)
  expectLine(product.startOutput, /^ +Git +not installed/)
  await drive(root, product, options)
  await step('stop', () => product.stop())
}

async function tryAsRoot(root: FreshRoot): Promise<void> {
  const options = { cwd: CLONE }
  const product = await step('npm start, as root', () => startProduct(root, options))
  expectLine(product.startOutput, /^ +Isolation +bubblewrap/)
  expectLine(product.startOutput, /^ +Git +not installed/)
  await drive(root, product, options)
  await step('apt-get install git', async () => {
    const install = ['apt-get', 'install', '--yes', '--quiet', '--no-install-recommends', 'git']
    const { code, output } = await root.run(install, {
      ...options,
      env: { DEBIAN_FRONTEND: 'noninteractive' },
    })
    if (code !== 0) throw new Error(output)
  })
  await step('stop of the sandbox', () => stopSandbox(product))
  await step('git status and commit', () => checkGit(root, product, options))
  await step('stop', () => product.stop())
}

async function main(): Promise<void> {
  if (process.getuid?.() !== 0) throw new Error('Cannot make a root: run this as root')
  ensureSystemPackages((line) => console.error(line), ['debootstrap'])
  const debian = await step('a minimal Debian', async () =>
    ensureDebian(cache, (line) => console.error(line)),
  )
  await using root = await step('a new machine with Node, npm and HEAD', () =>
    FreshRoot.create(debian, repository, cache),
  )
  await tryAsUser(root)
  await tryAsRoot(root)
  if (isProductOnly) return
  await step('npm test, as root', async () => {
    const code = await root.show(['npm', 'test'], { cwd: CLONE })
    if (code !== 0) throw new Error(`npm test exited with ${code}`)
  })
}

try {
  await main()
  console.log(
    isProductOnly ? 'The product works on a new machine' : 'The product and the tests work on a new machine',
  )
} catch (error) {
  console.error(`error: ${error instanceof Error ? error.message : String(error)}`)
  console.log('FAILED on a new machine')
  process.exitCode = 1
}
