import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { PtyClient } from '@sandwire/testing'
import { readShell } from '../e2e/support/attached.ts'
import { type RunningHost, startHost } from '../e2e/support/control.ts'
import { startSandboxd } from '../e2e/support/sandboxd.ts'
import type { WireServer } from '../e2e/support/wire-server.ts'

/** What a front end of the contract is given, whatever is behind it. */
export interface Place extends AsyncDisposable {
  /** What it says its mode is; a sandboxd by itself says nothing. */
  readonly mode: 'local' | 'sandbox' | undefined
  readonly fetch: (path: string, init?: RequestInit) => Promise<Response>
  /** Opens a terminal; a sandboxd by itself has another way to name sessions and none of the contract's. */
  readonly openPty?: (query: Readonly<Record<string, string>>) => PtyClient
  /** Runs a script in the workspace, in the name of its user. */
  readonly run: (script: string) => Promise<string>
}

function behindControl(host: RunningHost, mode: 'local' | 'sandbox', close: () => Promise<void>): Place {
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
    fetch: host.fetch,
    openPty: (query) => new PtyClient(host, `/ws/pty?${new URLSearchParams(query)}`),
    run: (script) => readShell(server, script),
    [Symbol.asyncDispose]: close,
  }
}

/** `WORKSPACE_MODE=local`: a folder of this machine is the workspace. */
export async function openLocalMode(): Promise<Place> {
  const folder = mkdtempSync('/tmp/contract-local-')
  const data = mkdtempSync('/tmp/contract-data-')
  // As somebody starts it who stands in the folder.
  const prefix = ['env', '-C', folder]
  const host = await startHost({ data: join(data, 'data'), prefix, env: { WORKSPACE_MODE: 'local' } })
  return behindControl(host, 'local', async () => {
    await host.stop()
    for (const each of [folder, data]) rmSync(each, { recursive: true, force: true })
  })
}

/** Sandboxes of their own, the usual one among them. */
export async function openSandboxMode(): Promise<Place> {
  const host = await startHost({ env: { WORKSPACE_MODE: 'sandbox' } })
  return behindControl(host, 'sandbox', host.stop)
}

/** A sandboxd without control before it, under the paths that control calls it by. */
export async function openSandboxd(): Promise<Place> {
  const sandboxd = await startSandboxd()
  return {
    mode: undefined,
    fetch: (path, init) => sandboxd.fetch(path.replace(/^\/api\//, '/workspace/compat/'), init),
    run: (script) => readShell(sandboxd, script),
    [Symbol.asyncDispose]: async () => void (await sandboxd.stop()),
  }
}
