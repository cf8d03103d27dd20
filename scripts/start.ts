// Runs Sandwire on this machine: sandboxd on loopback over the caller's folder, with a token only this user can read.

import { appendFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { createRuntimeFolder } from './runtime-folder.ts'
import { chooseAddress, findTrouble, parseStart } from './start-options.ts'

/** Time to the ready line; a cold start on a loaded machine takes seconds. */
const readyTimeoutMs = 30_000
/** Time an orderly end may take, processes in the sandbox included. */
const stopTimeoutMs = 10_000

const root = path.dirname(import.meta.dir)

function fail(message: string, hint: string): never {
  console.error(`error: ${message}\nhint: ${hint}`)
  process.exit(1)
}

async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest !== '') yield rest
}

/** The first line of sandboxd's output says where it listens; undefined when it ends without one. */
async function readUrl(stdout: ReadableStream<Uint8Array>): Promise<string | undefined> {
  const first = await readLines(stdout).next()
  const ready: unknown = first.done === true ? undefined : JSON.parse(first.value)
  return typeof ready === 'object' && ready !== null && 'url' in ready ? String(ready.url) : undefined
}

/** Keeps the log in its file and shows what a person should know. */
async function followLog(stderr: ReadableStream<Uint8Array>, file: string): Promise<void> {
  for await (const line of readLines(stderr)) {
    appendFileSync(file, `${line}\n`, { mode: 0o600 })
    const trouble = findTrouble(line)
    if (trouble !== undefined) console.error(trouble)
  }
}

const options = parseStart(process.argv.slice(2), process.env, process.cwd())
if (!options.isOk) fail(options.message, 'npm start -- --port 8081')
const { workspace } = options
const address = await chooseAddress(options.port)
if (address === undefined) fail(`Cannot listen on port ${options.port}: it is taken`, 'npm start -- --port 0')

const folder = createRuntimeFolder(process.env)
process.on('exit', () => folder.remove())
const secret = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')
const tokenFile = folder.write('token', secret)
const secretFile = folder.write('secret', secret)
const argv = ['--listen', address, '--workspace', workspace, '--secret-file', secretFile]
const child = Bun.spawn([process.execPath, path.join(root, 'apps/sandboxd/src/main.ts'), ...argv], {
  stdin: 'ignore',
  stdout: 'pipe',
  stderr: 'pipe',
  // A session of its own: Ctrl-C is for this script, which then ends sandboxd in order.
  detached: true,
})
process.on('exit', () => child.kill('SIGTERM'))
const log = followLog(child.stderr, folder.logFile)

let isStopping = false
const stop = (): void => {
  if (isStopping) return
  isStopping = true
  child.kill('SIGTERM')
  setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs).unref()
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop)

const url = await Promise.race([readUrl(child.stdout), Bun.sleep(readyTimeoutMs).then(() => undefined)])
if (url !== undefined) {
  console.log(`Sandwire runs at ${url}, over ${workspace}

In a second terminal, from ${root}:

  npx sbx-stdio ${url} --token-file ${tokenFile}

Whoever can read the token file can run commands as you. Log: ${folder.logFile}
Ctrl-C stops it and removes the token.`)
} else if (!isStopping) child.kill('SIGKILL')

const code = await child.exited
await Promise.race([log, Bun.sleep(1_000)])
if (!isStopping) fail(`sandboxd ended with ${child.signalCode ?? code}`, `see ${folder.logFile}`)
rmSync(folder.logFile, { force: true })
console.log('\nStopped')
process.exit(0)
