// Exposes `ctx.container` to tests with a real engine, without control.

import { DurableObject, WorkerEntrypoint } from 'cloudflare:workers'

/** Responds to intercepted requests with their details. */
export class Catcher extends WorkerEntrypoint {
  async fetch(request) {
    return Response.json({ url: request.url, label: this.ctx.props.label, body: await request.text() })
  }
}

export class Box extends DurableObject {
  async fetch(request) {
    const { container, exports, id } = this.ctx
    const { pathname, searchParams } = new URL(request.url)
    switch (pathname) {
      case '/start': {
        const { hasInternet, env } = await request.json()
        container.start({ enableInternet: hasInternet, env })
        await container.setInactivityTimeout(600_000)
        return Response.json({ id: id.toString() })
      }
      case '/catch': {
        const name = searchParams.get('name')
        const catcher = exports.Catcher({ props: { label: searchParams.get('label') } })
        if (searchParams.has('tls')) await container.interceptOutboundHttps(name, catcher)
        else await container.interceptOutboundHttp(name, catcher)
        return new Response('caught')
      }
      case '/port':
        return container.getTcpPort(Number(searchParams.get('port'))).fetch('http://localhost/healthz')
      case '/destroy':
        await container.destroy()
        return new Response('destroyed')
      default:
        return new Response('not found', { status: 404 })
    }
  }
}

// oxlint-disable-next-line import/no-default-export -- workerd requires one
export default {
  async fetch(request, env) {
    const name = new URL(request.url).searchParams.get('box')
    try {
      return await env.BOX.get(env.BOX.idFromName(name)).fetch(request)
    } catch (error) {
      return new Response(error.message, { status: 500 })
    }
  },
}
