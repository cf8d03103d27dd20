import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { AgentInstaller } from './agent-installer.ts'
import { usedVersion } from './agents-folder.ts'
import { type AGENT_PROGRAMS, platformOf } from './catalog.ts'
import { installAgent } from './install-agent.ts'

let base = ''
let archive = new Uint8Array()
const requested: string[] = []

/** An npm package with a program and a script that must not run. */
function pack(): Uint8Array<ArrayBuffer> {
  mkdirSync(path.join(base, 'package'))
  writeFileSync(path.join(base, 'package/claude'), '#!/bin/sh\necho agent\n')
  const scripts = { postinstall: `touch ${path.join(base, 'ran')}` }
  writeFileSync(path.join(base, 'package/package.json'), JSON.stringify({ name: 'x', scripts }))
  Bun.spawnSync(['tar', '-czf', path.join(base, 'p.tgz'), '-C', base, 'package'])
  return new Uint8Array(readFileSync(path.join(base, 'p.tgz')))
}

const integrityOf = (bytes: Uint8Array): string =>
  `sha512-${new Bun.CryptoHasher('sha512').update(bytes).digest('base64')}`

const programsWith = (integrity: string): typeof AGENT_PROGRAMS => ({
  claude: {
    version: '1.0.0',
    file: 'claude',
    packages: { [platformOf(false)]: { name: '@x/claude', integrity } },
  },
})

async function registry(url: string): Promise<Response> {
  requested.push(url)
  if (url.endsWith('.tgz'))
    return new Response(archive, { headers: { 'content-length': String(archive.byteLength) } })
  if (url.endsWith('/9.9.9')) return new Response(null, { status: 404 })
  return Response.json({ dist: { tarball: 'https://r.example/p.tgz', integrity: integrityOf(archive) } })
}

const optionsWith = (integrity = integrityOf(archive)) => ({
  folder: path.join(base, 'agents'),
  name: 'claude',
  registry: 'https://r.example/',
  onProgress: () => undefined,
  fetch: registry,
  programs: programsWith(integrity),
})

beforeEach(() => {
  base = mkdtempSync(path.join(tmpdir(), 'sandwire-agents-'))
  archive = pack()
  requested.length = 0
})
afterEach(() => rmSync(base, { recursive: true }))

test('installs the pinned version, and runs nothing of the package', async () => {
  const { folder } = optionsWith()
  let last = [0, 0]
  await installAgent({ ...optionsWith(), onProgress: (...progress) => void (last = progress) })
  expect(last).toEqual([archive.byteLength, archive.byteLength])
  expect(readlinkSync(path.join(folder, 'claude/claude'))).toBe('1.0.0/claude')
  expect(readdirSync(path.join(folder, 'claude/1.0.0'))).toEqual(['claude'])
  expect(statSync(path.join(folder, 'claude/1.0.0/claude')).mode & 0o777).toBe(0o755)
  expect(existsSync(path.join(base, 'ran'))).toBe(false)
  expect(requested[0]).toBe('https://r.example/@x%2fclaude/1.0.0')
  requested.length = 0
  await installAgent(optionsWith())
  expect(requested).toEqual([])
})

test('refuses a package that is not the pinned one, and leaves nothing', async () => {
  const refused = installAgent(optionsWith(integrityOf(new Uint8Array(3))))
  expect(refused).rejects.toThrow('version 1.0.0 has not the expected content')
  await refused.catch(() => undefined)
  expect(readdirSync(path.join(base, 'agents/claude'))).toEqual([])
})

test('installs another version by what the registry states, and keeps the first one', async () => {
  await installAgent(optionsWith())
  await installAgent({ ...optionsWith(integrityOf(new Uint8Array(3))), version: '2.0.0' })
  expect(usedVersion(path.join(base, 'agents'), { name: 'claude', file: 'claude' })).toBe('2.0.0')
  expect(existsSync(path.join(base, 'agents/claude/1.0.0/claude'))).toBe(true)
  expect(installAgent({ ...optionsWith(), version: '9.9.9' })).rejects.toThrow('has no version 9.9.9')
  expect(installAgent({ ...optionsWith(), version: '../1' })).rejects.toThrow('is not a version')
  expect(installAgent({ ...optionsWith(), name: 'other' })).rejects.toThrow('known ones are claude')
})

test('installs once when runs need it, and reports a failure once', async () => {
  const lines: string[] = []
  const installer = new AgentInstaller(
    () => optionsWith(),
    (line) => lines.push(line),
  )
  expect(installer.ensure('claude')).toMatchObject({ state: 'installing', version: '1.0.0' })
  expect(installer.ensure('claude')).toMatchObject({ state: 'installing' })
  while (installer.ensure('claude').state === 'installing') await Bun.sleep(1)
  expect(installer.ensure('claude')).toEqual({ state: 'installed', version: '1.0.0' })
  expect(requested.filter((url) => url.endsWith('.tgz'))).toHaveLength(1)
  expect(lines.at(-1)).toBe('Installed agent claude 1.0.0')
  rmSync(path.join(base, 'agents'), { recursive: true })
  const failing = new AgentInstaller(
    () => ({ ...optionsWith(), fetch: () => Promise.reject(new Error('down')) }),
    () => undefined,
  )
  failing.ensure('claude')
  let status = failing.ensure('claude')
  while (status.state === 'installing') {
    await Bun.sleep(1)
    status = failing.ensure('claude')
  }
  const problem = 'Cannot install agent "claude": the npm registry cannot be reached'
  expect(status).toEqual({ state: 'failed', problem })
  expect(failing.ensure('claude').state).toBe('installing')
})
