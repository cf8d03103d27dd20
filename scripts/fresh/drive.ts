import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { CommandOptions, FreshRoot } from './fresh-root.ts'

/** `npm start` on a fresh machine installs packages and builds the page first. */
const START_TIMEOUT_MS = 15 * 60_000
const STEP_TIMEOUT_MS = 60_000

const SANDBOX = 'dev'
const NEEDLE = 'a needle in a haystack'
const SECOND = 1000

/** A product that was started with `npm start` in a fresh root. */
export interface Product {
  readonly url: string
  readonly token: string
  /** What `npm start` printed until it was up. */
  readonly startOutput: string
  stop(): Promise<void>
}

function check(isTrue: boolean, problem: string): void {
  if (!isTrue) throw new Error(problem)
}

/** Reads until `pattern` is found; throws when the output ends or takes too long. */
async function readUntil(
  stream: ReadableStream<Uint8Array>,
  pattern: RegExp,
  timeoutMs: number,
): Promise<{ readonly match: RegExpExecArray; readonly text: string }> {
  const decoder = new TextDecoder()
  const reader = stream.getReader()
  const timer = setTimeout(() => void reader.cancel(), timeoutMs)
  let text = ''
  try {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) break
      text += decoder.decode(value, { stream: true })
      const match = pattern.exec(text)
      if (match !== null) return { match, text }
    }
  } finally {
    clearTimeout(timer)
    reader.releaseLock()
  }
  throw new Error(`Cannot find ${pattern} within ${timeoutMs / SECOND} s in:\n${text.slice(-2_000)}`)
}

async function discard(stream: ReadableStream<Uint8Array>): Promise<void> {
  for await (const _ of stream) {
    // Read so that the program is never blocked by a full pipe.
  }
}

/** Runs `npm start` and waits until it prints its URL. */
export async function startProduct(root: FreshRoot, options: CommandOptions): Promise<Product> {
  const pidFile = '/tmp/start.pid'
  const child = root.spawn(['sh', '-c', `echo $$ > ${pidFile}; exec npm start 2>&1`], {
    ...options,
    // Another Sandwire may use the default port: the network is this machine's.
    env: { SANDWIRE_PORT: '0' },
  })
  const { match, text } = await readUntil(child.stdout, /Ctrl-C stops the server[^\n]*\n/, START_TIMEOUT_MS)
  void discard(child.stdout)
  void discard(child.stderr)
  const url = /http:\/\/localhost:\d+/.exec(text)?.[0]
  if (url === undefined) throw new Error(`Cannot find the address in: ${match.input}`)
  const token = readFileSync(path.join(root.folder, options.cwd, '.sandwire/local-token'), 'utf8').trim()
  return {
    url,
    token,
    startOutput: text,
    stop: async () => {
      await root.run(['sh', '-c', `kill -INT $(cat ${pidFile}); rm ${pidFile}`], options)
      check((await child.exited) === 0, `npm start exited with ${child.exitCode} after Ctrl-C`)
    },
  }
}

/** Opens a shell through the CLI in a terminal and gets an answer at its prompt. */
export async function checkPrompt(root: FreshRoot, { url }: Product, options: CommandOptions): Promise<void> {
  const cli = `npx sbx-stdio ${url}/attach --sandbox ${SANDBOX} --cmd bash`
  const child = root.spawn(['script', '--quiet', '--return', '--command', cli, '/dev/null'], options)
  void discard(child.stderr)
  await readUntil(child.stdout, /\$ $|# $/, STEP_TIMEOUT_MS)
  await child.stdin.write('echo answer-$((6 * 7))\r')
  await readUntil(child.stdout, /answer-42/, STEP_TIMEOUT_MS)
  await child.stdin.write('exit 3\r')
  void discard(child.stdout)
  const code = await child.exited
  check(code === 3, `sbx-stdio exited with ${code}, not with the shell's exit code 3`)
}

/** Runs a command in the sandbox through the CLI and returns what it printed. */
async function runInSandbox(
  root: FreshRoot,
  { url }: Product,
  script: string,
  options: CommandOptions,
): Promise<string> {
  const cli = ['npx', 'sbx-stdio', `${url}/attach`, '--sandbox', SANDBOX]
  const { code, output } = await root.run([...cli, '--cmd', 'sh', '--arg', '-c', '--arg', script], options)
  check(code === 0, `"${script}" exited with ${code} in the sandbox:\n${output}`)
  return output
}

function request({ url, token }: Product, route: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${url}/api/workspaces/${SANDBOX}/${route}`, {
    ...init,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    signal: AbortSignal.timeout(STEP_TIMEOUT_MS),
  })
}

async function requestText(product: Product, route: string, init: RequestInit = {}): Promise<string> {
  const response = await request(product, route, init)
  const text = await response.text()
  check(response.ok, `${init.method ?? 'GET'} ${route} answered ${response.status}: ${text}`)
  return text
}

/** Writes a file over HTTP, and reads it over HTTP and in the sandbox. */
export async function checkFile(root: FreshRoot, product: Product, options: CommandOptions): Promise<void> {
  await requestText(product, 'file?path=notes.txt', { method: 'PUT', body: `${NEEDLE}\n` })
  check(
    (await requestText(product, 'file?path=notes.txt')) === `${NEEDLE}\n`,
    'The file reads back differently',
  )
  const inside = await runInSandbox(root, product, 'cat notes.txt', options)
  check(inside.includes(NEEDLE), `The file is not in the sandbox: ${inside}`)
}

export async function checkSearch(product: Product): Promise<void> {
  const found = await requestText(product, 'search?q=needle')
  check(found.includes('"path":"notes.txt"') && found.includes('"matches":1'), `The search found: ${found}`)
}

/** Without git, git routes answer `command_not_found`. */
export async function checkGitMissing(product: Product): Promise<void> {
  const answer = await (await request(product, 'git/status')).text()
  check(answer.includes('"command_not_found"'), `git/status without git answered: ${answer}`)
}

/** Stops the sandbox; its next start finds programs that were installed meanwhile. */
export async function stopSandbox({ url, token }: Product): Promise<void> {
  const response = await fetch(`${url}/api/sandboxes/${SANDBOX}/stop`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(STEP_TIMEOUT_MS),
  })
  check(response.ok, `The stop answered ${response.status}: ${await response.text()}`)
}

export async function checkGit(root: FreshRoot, product: Product, options: CommandOptions): Promise<void> {
  await runInSandbox(root, product, 'git init --quiet .', options)
  const status = await requestText(product, 'git/status')
  check(status.includes('"notes.txt"'), `git/status answered: ${status}`)
  const send = (route: string, body: object): Promise<string> =>
    requestText(product, route, { method: 'POST', body: JSON.stringify(body) })
  await send('git/stage', { paths: ['notes.txt'] })
  await send('git/commit', { message: 'First', author: { name: 'Fresh', email: 'fresh@example.test' } })
  const log = await requestText(product, 'git/log')
  check(log.includes('First'), `git/log answered: ${log}`)
}

/** The page and its first script are served. */
export async function checkPage({ url }: Product): Promise<void> {
  const page = await fetch(`${url}/`)
  const html = await page.text()
  const script = /<script[^>]+src="([^"]+)"/.exec(html)?.[1]
  check(page.ok && script !== undefined, `The page answered ${page.status}: ${html.slice(0, 500)}`)
  const code = await fetch(new URL(script ?? '', page.url))
  check(code.ok && (await code.text()).length > 10_000, `The script of the page answered ${code.status}`)
}
