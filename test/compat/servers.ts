import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { PtyClient } from '@sandwire/testing'
import { readShell } from '../e2e/support/attached.ts'
import { type RunningHost, startHost } from '../e2e/support/control.ts'
import { startSandboxd } from '../e2e/support/sandboxd.ts'
import { CLAUDE_PROFILE, openSpritesServer } from '../e2e/support/sprites-server.ts'
import type { WireServer } from '../e2e/support/wire-server.ts'

/** A server with the compat API. */
export interface CompatServer extends AsyncDisposable {
  /** The mode that it reports; sandboxd alone reports none. */
  readonly mode: 'local' | 'sandbox' | undefined
  /** The exit code of a terminal that SIGKILL ended: null, or what the API of sprites reports. */
  readonly killedCode: null | 137
  /** It serves sessions of Claude Code, whether or not the program can start. */
  readonly hasClaude: boolean
  readonly fetch: (path: string, init?: RequestInit) => Promise<Response>
  /** Opens a terminal; sandboxd alone has no compat sessions. */
  readonly openPty?: (query: Readonly<Record<string, string>>) => PtyClient
  /** Opens a session of Claude Code. */
  readonly openClaude?: () => PtyClient
  /** Runs a script in the workspace as its user. */
  readonly run: (script: string) => Promise<string>
}

function throughControl(
  host: RunningHost,
  mode: 'local' | 'sandbox',
  close: () => Promise<void>,
): CompatServer {
  const server: WireServer = {
    port: host.port,
    headers: host.headers,
    sandbox: mode === 'local' ? 'local' : 'default',
    socketUrl: (path) => `ws://127.0.0.1:${host.port}${path}`,
    fetch: (path, init) => host.fetch(path.replace(/^\/sessions/, '/api/account/sessions'), init),
    stop: host.stop,
  }
  return {
    mode,
    killedCode: null,
    hasClaude: false,
    fetch: host.fetch,
    openPty: (query) => new PtyClient(host, `/ws/pty?${new URLSearchParams(query)}`),
    openClaude: () => new PtyClient(host, '/ws/claude-stream'),
    run: (script) => readShell(server, script),
    [Symbol.asyncDispose]: close,
  }
}

/** The environment of the tests may have a key. */
const NO_KEY = { ANTHROPIC_API_KEY: undefined, CLAUDE_CODE_OAUTH_TOKEN: undefined }

/** A host with `WORKSPACE_MODE=local`, serving a folder of this machine. */
export async function openLocalMode(): Promise<CompatServer> {
  const folder = mkdtempSync('/tmp/contract-local-')
  const data = mkdtempSync('/tmp/contract-data-')
  // Started in the folder, as a user would.
  const prefix = ['env', '-C', folder]
  const host = await startHost({
    data: join(data, 'data'),
    prefix,
    env: { ...NO_KEY, WORKSPACE_MODE: 'local' },
  })
  return throughControl(host, 'local', async () => {
    await host.stop()
    for (const each of [folder, data]) rmSync(each, { recursive: true, force: true })
  })
}

/** A host with sandboxes, `default` among them. */
export async function openSandboxMode(): Promise<CompatServer> {
  const host = await startHost({ env: { ...NO_KEY, WORKSPACE_MODE: 'sandbox' } })
  return throughControl(host, 'sandbox', host.stop)
}

/** A host whose sandbox is a sprite of the fake Sprites API. */
export async function openSpritesMode(): Promise<CompatServer> {
  const sprites = await openSpritesServer()
  // This machine may have the program.
  await sprites.write(CLAUDE_PROFILE, '#!/bin/sh\nexec no-such-program\n')
  const host = await startHost({ env: { ...sprites.env, ...NO_KEY, WORKSPACE_MODE: 'sandbox' } })
  const close = async (): Promise<void> => {
    await host.stop()
    await sprites[Symbol.asyncDispose]()
  }
  return { ...throughControl(host, 'sandbox', close), killedCode: 137, hasClaude: true }
}

/** sandboxd alone, under the paths that control uses. */
export async function openSandboxd(): Promise<CompatServer> {
  const sandboxd = await startSandboxd()
  return {
    mode: undefined,
    killedCode: null,
    hasClaude: false,
    fetch: (path, init) => sandboxd.fetch(path.replace(/^\/api\//, '/workspace/compat/'), init),
    run: (script) => readShell(sandboxd, script),
    [Symbol.asyncDispose]: async () => void (await sandboxd.stop()),
  }
}
