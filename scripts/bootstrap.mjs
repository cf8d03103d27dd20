// Makes node_modules match package-lock.json before an npm script runs. Plain Node, because Bun itself is
// one of the packages it installs. Silent and quick when there is nothing to do.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const modules = path.join(root, 'node_modules')
const lockfile = path.join(root, 'package-lock.json')
const stampFile = path.join(modules, '.sandwire-stamp')
// Outside node_modules, which `npm ci` deletes.
const lockDirectory = path.join(root, '.cache', 'bootstrap.lock')

const lockPollMs = 200
// Longer than an install over a slow network; after that the other process is considered stuck.
const lockTimeoutMs = 10 * 60_000
// Bun's package ships a shell script of a few hundred bytes where the binary of ~100 MB belongs.
const placeholderMaxBytes = 1_000_000

/** Identifies the tree to install: the lockfile and this platform. */
function wantedStamp() {
  const hash = createHash('sha256').update(fs.readFileSync(lockfile)).digest('hex')
  return `${hash} ${process.platform}-${process.arch}\n`
}

function readOrUndefined(file) {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    // A missing file is a valid result.
    return undefined
  }
}

/** True when a plain `npm install` has already installed the locked versions. */
function isInstalledByHand() {
  const installed = readOrUndefined(path.join(modules, '.package-lock.json'))
  if (installed === undefined) return false
  const have = JSON.parse(installed).packages
  const want = JSON.parse(fs.readFileSync(lockfile, 'utf8')).packages
  const isSame = ([name, entry]) =>
    !name.includes('node_modules/') ||
    (have[name] ? have[name].version === entry.version : entry.optional === true)
  return Object.entries(want).every(isSame)
}

function install() {
  console.error('Installing dependencies …')
  const startedMs = Date.now()
  const args = ['ci', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']
  const retries = ['--fetch-retries=2', '--fetch-retry-mintimeout=2000', '--fetch-retry-maxtimeout=10000']
  const npm = process.env.npm_execpath
  const [command, first] = npm ? [process.execPath, [npm]] : ['npm', []]
  const result = spawnSync(command, [...first, ...args, ...retries], { cwd: root, encoding: 'utf8' })
  if (result.status !== 0) failInstall(result)
  console.error(`Installed in ${((Date.now() - startedMs) / 1000).toFixed(1)} s`)
}

function failInstall(result) {
  const output = `${result.stderr ?? ''}`
  const code = /npm (?:error|ERR!) code (\S+)/.exec(output)?.[1] ?? result.error?.code
  const state = code ?? `npm ci exited with ${result.status ?? result.signal}`
  if (code === 'EUSAGE') {
    fail(`Cannot install dependencies: package-lock.json does not match package.json`, 'npm install')
  }
  fail(
    `Cannot install dependencies: ${state}`,
    'check access to the npm registry, then run `npm ci --ignore-scripts` to see what npm says',
  )
}

/**
 * Links Bun's platform binary as its postinstall script would, because install scripts are disabled for all
 * packages. npm has already selected the package for this system, CPU and libc.
 */
function linkBun() {
  const bin = path.join(modules, 'bun', 'bin')
  const isLinked = (name) => fs.statSync(path.join(bin, name)).size > placeholderMaxBytes
  if (isLinked('bun.exe') && isLinked('bunx.exe')) return
  const vendor = path.join(modules, '@oven')
  const names = fs.existsSync(vendor) ? fs.readdirSync(vendor) : []
  const binary = names
    .map((name) => path.join(vendor, name, 'bin', 'bun'))
    .find((file) => fs.existsSync(file) && spawnSync(file, ['--version']).status === 0)
  if (binary === undefined) {
    fail(
      `Cannot run Bun on ${process.platform}-${process.arch}: no platform package fits`,
      'use Linux or macOS on x64 or arm64, and do not omit optional dependencies',
    )
  }
  for (const name of ['bun.exe', 'bunx.exe']) {
    const target = path.join(bin, name)
    fs.rmSync(target, { force: true })
    try {
      fs.linkSync(binary, target)
    } catch {
      // The file system has no hard links, so the file is copied.
      fs.copyFileSync(binary, target)
      fs.chmodSync(target, 0o755)
    }
  }
}

/** Runs `work` while no other bootstrap does; a lock whose owner has died is taken over. */
async function withLock(work) {
  fs.mkdirSync(path.dirname(lockDirectory), { recursive: true })
  const own = fs.mkdtempSync(`${lockDirectory}.`)
  fs.writeFileSync(path.join(own, 'pid'), `${process.pid}`)
  const deadlineMs = Date.now() + lockTimeoutMs
  // Renaming onto a directory that is not empty fails, so exactly one process gets the lock.
  while (!tryRename(own, lockDirectory)) {
    if (Date.now() > deadlineMs) {
      fs.rmSync(own, { recursive: true, force: true })
      fail('Cannot install dependencies: another install is still running', `rm -r ${lockDirectory}`)
    }
    if (!isOwnerAlive()) fs.rmSync(lockDirectory, { recursive: true, force: true })
    else await new Promise((resolve) => setTimeout(resolve, lockPollMs))
  }
  process.on('exit', () => fs.rmSync(lockDirectory, { recursive: true, force: true }))
  work()
}

function tryRename(from, to) {
  try {
    fs.renameSync(from, to)
    return true
  } catch (error) {
    if (['ENOTEMPTY', 'EEXIST', 'EPERM'].includes(error.code)) return false
    throw error
  }
}

function isOwnerAlive() {
  const pid = Number(readOrUndefined(path.join(lockDirectory, 'pid')))
  // No pid: the owner is releasing the lock, and the next rename shows the outcome.
  if (!pid) return true
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

function fail(message, hint) {
  console.error(`error: ${message}`)
  console.error(`hint: ${hint}`)
  process.exit(1)
}

const wanted = wantedStamp()
if (readOrUndefined(stampFile) !== wanted) {
  await withLock(() => {
    if (readOrUndefined(stampFile) === wanted) return
    if (!isInstalledByHand()) install()
    linkBun()
    fs.writeFileSync(stampFile, wanted)
  })
}
