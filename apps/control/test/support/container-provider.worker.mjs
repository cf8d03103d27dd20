// The real container provider in an object of its own, which a test calls through HTTP.

import { DurableObject } from 'cloudflare:workers'
import { CONTAINER_SCHEMA, ContainerStore } from '../../src/providers/container/container-store.ts'
import { ContainerProvider } from '../../src/providers/container/container.ts'
import { openSchema } from '../../src/sql.ts'

export class Held extends DurableObject {
  starts = 0

  constructor(ctx, env) {
    super(ctx, env)
    const { container } = ctx
    const { sql } = ctx.storage
    openSchema(sql, { version: 1, statements: CONTAINER_SCHEMA })
    const engine = {
      get running() {
        return container.running
      },
      start: (options) => {
        this.starts += 1
        container.start(options)
      },
      monitor: () => container.monitor(),
      destroy: () => container.destroy(),
      signal: (number) => container.signal(number),
      getTcpPort: (port) => container.getTcpPort(port),
      setInactivityTimeout: (ms) => container.setInactivityTimeout(ms),
    }
    this.provider = new ContainerProvider({
      engine,
      store: new ContainerStore((query, ...bindings) => sql.exec(query, ...bindings).toArray()),
      openNetwork: async () => undefined,
      hasInternet: true,
      nowMs: () => Date.now(),
      sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      mintEpoch: () => crypto.randomUUID(),
      hold: (work) => ctx.waitUntil(work),
      onLost: () => undefined,
      onStuck: () => undefined,
    })
  }

  /** `{call, args}` in, `{value}` or `{error}` out. */
  async fetch(request) {
    const { call, args } = await request.json()
    if (call === 'starts') return Response.json({ value: this.starts })
    try {
      const value = await this.provider[call](...args)
      if (!(value instanceof Response)) return Response.json({ value })
      await value.body?.cancel()
      return Response.json({ value: value.status })
    } catch (error) {
      return Response.json({ error: { code: error.code ?? 'internal', message: error.message } })
    }
  }
}

// oxlint-disable-next-line import/no-default-export -- workerd requires it
export default {
  fetch: (request, env) => {
    const name = new URL(request.url).searchParams.get('name')
    return env.HELD.get(env.HELD.idFromName(name)).fetch(request)
  },
}
