// Loaded into the host by `BUN_OPTIONS`. Reports every request of control before and after it is handled, and waits for the test's answer.

const SOCKET = process.env['SANDWIRE_TEST_FAILPOINTS']
const serve = Bun.serve

async function report(unix: string, moment: 'before' | 'after', request: Request): Promise<void> {
  const [, , sandbox = '', rest = ''] = new URL(request.url).pathname.split('/')
  const body = JSON.stringify({ moment, sandbox, call: `${request.method} ${rest}`.trim() })
  try {
    await fetch('http://test/', { unix, method: 'POST', body, keepalive: false })
  } catch {
    // The test has ended.
  }
}

type Handler = (
  this: Bun.Server<undefined>,
  request: Request,
  server: Bun.Server<undefined>,
) => Promise<Response>

Object.assign(Bun, {
  serve: (options: Bun.Serve.Options<undefined>) => {
    const handle: unknown = Reflect.get(options, 'fetch')
    if (SOCKET === undefined || typeof handle !== 'function') return serve(options)
    const reporting: Handler = async (request, server) => {
      await report(SOCKET, 'before', request)
      const response = (await Reflect.apply(handle, server, [request, server])) as Response
      await report(SOCKET, 'after', request)
      return response
    }
    return serve({ ...options, fetch: reporting })
  },
})
