import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { attach } from '@sandwire/client'
import { PROTOCOL_VERSION } from '@sandwire/protocol'
import { type RunningControl, startControl, TOKEN } from '../../apps/control/test/support/control.ts'
import { BUNDLE_ENTRY, bundleDaemon } from '../../apps/host/src/isolation/daemon-bundle.ts'
import { ManagedSandboxes } from './support/managed-sandboxes.ts'

const DAEMON = resolve(import.meta.dir, '../../apps/sandboxd/src')
const N = PROTOCOL_VERSION

/** A build with a protocol version and the oldest version that it supports. */
interface Build {
  readonly protocol: number
  readonly compatibleFrom: number
}

function defineFor({ protocol, compatibleFrom }: Build): Record<string, string> {
  return { SANDWIRE_BUILD_PROTOCOL: String(protocol), SANDWIRE_BUILD_COMPATIBLE_FROM: String(compatibleFrom) }
}

/** Runs control of one build with sandboxes of another. */
async function pair(
  control: Build,
  sandboxd: Build,
  run: (running: RunningControl) => Promise<void>,
): Promise<void> {
  const cache = mkdtempSync('/tmp/versions-')
  try {
    const folder = await bundleDaemon(DAEMON, join(cache, 'code'), defineFor(sandboxd))
    const code = { folder, entry: BUNDLE_ENTRY }
    await using runner = await ManagedSandboxes.open({ executable: process.execPath, code })
    await using running = await startControl({ runner, define: defineFor(control) })
    await run(running)
  } finally {
    rmSync(cache, { recursive: true, force: true })
  }
}

/** Attaches, sends a line and waits for the exit; returns the exit code and echo, or the error. */
async function converse(
  control: RunningControl,
): Promise<{ readonly ended: string; readonly output: string }> {
  let output = ''
  const handle = attach({
    url: `http://127.0.0.1:${control.port}/attach?sandbox=dev`,
    request: { cmd: 'sh', args: ['-c', 'cat; exit 7'] },
    credentials: async () => ({
      headers: { authorization: `Bearer ${TOKEN}`, host: `localhost:${control.port}` },
    }),
    onOutput: (_, bytes) => void (output += new TextDecoder().decode(bytes)),
  })
  handle.write(new TextEncoder().encode('said\n')).catch(() => undefined)
  handle.eof()
  const ended = await handle.exit.then(
    ({ code }) => `exit ${code}`,
    (error: unknown) =>
      `${String(Reflect.get(Object(error), 'code'))}: ${String(Reflect.get(Object(error), 'message'))}`,
  )
  return { ended, output }
}

const works = { ended: 'exit 7', output: 'said\n' }

describe('versions side by side', () => {
  test('control works with the previous sandboxd', () =>
    pair({ protocol: N + 1, compatibleFrom: N }, { protocol: N, compatibleFrom: N }, async (control) => {
      expect(await converse(control)).toEqual(works)
    }))

  test('control works with the next sandboxd', () =>
    pair({ protocol: N, compatibleFrom: N }, { protocol: N + 1, compatibleFrom: N }, async (control) => {
      expect(await converse(control)).toEqual(works)
    }))

  test('control refuses an unsupported older sandboxd and reports that the sandbox is outdated', () =>
    pair({ protocol: N + 2, compatibleFrom: N + 1 }, { protocol: N, compatibleFrom: N }, async (control) => {
      const { ended, output } = await converse(control)
      expect(ended).toStartWith('version_unsupported: ')
      expect(ended).toContain('its sandboxd is old')
      expect(output).toBe('')
    }))

  test('control refuses a sandboxd that dropped its version and reports that the server is outdated', () =>
    pair({ protocol: N, compatibleFrom: N }, { protocol: N + 2, compatibleFrom: N + 1 }, async (control) => {
      const { ended, output } = await converse(control)
      expect(ended).toStartWith('version_unsupported: ')
      expect(ended).toContain('this server is old')
      expect(output).toBe('')
    }))
})
