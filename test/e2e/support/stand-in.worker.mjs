// A Worker in place of control, to test what the host provides to any Worker.

import { DurableObject, WorkerEntrypoint } from 'cloudflare:workers'

export class SandboxObject extends DurableObject {
  /** Number of requests, across restarts of workerd. */
  async count() {
    const count = ((await this.ctx.storage.get('count')) ?? 0) + 1
    await this.ctx.storage.put('count', count)
    return count
  }
}

export class AccountObject extends DurableObject {}
export class MachineObject extends DurableObject {}
export class GatewayGrantObject extends DurableObject {}
export class ClaudeSandbox extends DurableObject {}
export class ConversationObject extends DurableObject {}

/** Shows the headers that reach the credential gateway. */
export class Gateway extends WorkerEntrypoint {
  async fetch(request) {
    return Response.json([...request.headers])
  }
}

export class Public extends WorkerEntrypoint {
  async fetch(request) {
    const url = new URL(request.url)
    switch (url.pathname) {
      case '/count':
        return Response.json(await this.env.SANDBOX.getByName('one').count())
      case '/host':
        return this.env.HOST.fetch('http://host/health')
      case '/pass':
        return this.env.SLOT_1.fetch('http://localhost/', request)
      case '/out':
        return fetch(url.searchParams.get('url') ?? '').catch(() => new Response('blocked', { status: 502 }))
      case '/throw':
        throw new Error('canary')
      default:
        return Response.json({ url: request.url, cf: request.cf ?? null, headers: [...request.headers] })
    }
  }
}

// oxlint-disable-next-line import/no-default-export -- workerd requires one
export default { fetch: () => new Response('default') }
