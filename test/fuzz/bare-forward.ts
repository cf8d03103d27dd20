import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Miniflare } from 'miniflare'
import { readProcessTable } from '@sandwire/testing'
import { V8_FLAGS } from '../../apps/host/src/control/workerd-config.ts'

/** Passes every request through an object to a server, as control does with files and upgrades, and does nothing else. */
const WORKER = `import { DurableObject } from 'cloudflare:workers'
export class Forward extends DurableObject {
  fetch(request) {
    return this.env.SERVER.fetch(new Request('http://server/', request))
  }
}
export default {
  fetch: (request, { FORWARD }) => FORWARD.get(FORWARD.idFromName('only')).fetch(request),
}
`

/** A workerd without control: what its heap does by itself. */
export interface BareForward extends AsyncDisposable {
  readonly url: string
  readonly workerd: number
}

/** GET is answered with `content`. */
export async function openBareForward(content: Uint8Array<ArrayBuffer>): Promise<BareForward> {
  const folder = mkdtempSync(join(tmpdir(), 'bare-forward-'))
  const socket = join(folder, 'server.sock')
  const server = Bun.serve({
    unix: socket,
    fetch: async (request, self) => {
      if (self.upgrade(request)) return undefined
      await request.arrayBuffer()
      return new Response(request.method === 'GET' ? content : '{}')
    },
    websocket: { message: () => undefined },
  })
  process.env['MINIFLARE_WORKERD_V8_FLAGS'] = V8_FLAGS.join(' ')
  const before = new Set(readProcessTable().map(({ pid }) => pid))
  const miniflare = new Miniflare({
    modules: [{ type: 'ESModule', path: 'index.js', contents: WORKER }],
    modulesRoot: '/',
    compatibilityDate: '2026-07-01',
    durableObjects: { FORWARD: { className: 'Forward', useSQLite: true } },
    serviceBindings: { SERVER: { external: { address: `unix:${socket}`, http: {} } } },
    // Not through miniflare's own worker.
    unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
  })
  const url = (await miniflare.unsafeGetDirectURL()).href
  const workerd = readProcessTable().find(
    ({ pid, name, parentPid }) => name === 'workerd' && parentPid === process.pid && !before.has(pid),
  )
  if (workerd === undefined) throw new Error('Cannot find the workerd of miniflare')
  return {
    url,
    workerd: workerd.pid,
    [Symbol.asyncDispose]: async () => {
      await miniflare.dispose()
      await server.stop(true)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
