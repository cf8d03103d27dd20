// Loaded into the host by `BUN_OPTIONS`. Reports every request of control to the host, and the steps of control's objects, before and
// after it is handled, and waits for the test's answer.

import { readFileSync } from 'node:fs'
import { OBJECT_STEPS } from './steps.ts'

const SOCKET = process.env['SANDWIRE_TEST_FAILPOINTS']
/** Path of the host API that only the altered control requests. */
const STEP_PATH = '/failpoint'
const { serve, build } = Bun

interface Point {
  readonly moment: string
  readonly sandbox: string
  readonly call: string
}

async function report(unix: string, point: Point): Promise<void> {
  try {
    await fetch('http://test/', { unix, method: 'POST', body: JSON.stringify(point), keepalive: false })
  } catch {
    // The test has ended.
  }
}

type Handler = (
  this: Bun.Server<undefined>,
  request: Request,
  server: Bun.Server<undefined>,
) => Promise<Response>

function reporting(unix: string, handle: CallableFunction): Handler {
  return async (request, server) => {
    const { pathname, searchParams } = new URL(request.url)
    if (pathname === STEP_PATH) {
      const [call, moment] = [searchParams.get('call') ?? '', searchParams.get('moment') ?? '']
      await report(unix, { moment, sandbox: '', call })
      return new Response()
    }
    const [, , sandbox = '', rest = ''] = pathname.split('/')
    const call = `${request.method} ${rest}`.trim()
    await report(unix, { moment: 'before', sandbox, call })
    const response = (await Reflect.apply(handle, server, [request, server])) as Response
    await report(unix, { moment: 'after', sandbox, call })
    return response
  }
}

/** Appended to control's entry: its objects report some of their methods through the host. */
const STEPS_SOURCE = `
import { AccountObject as Account } from './account/object.ts'
import { SandboxObject as Sandbox } from './sandbox/object.ts'
for (const step of ${JSON.stringify(OBJECT_STEPS)}) {
  const [name, method] = step.split('.')
  const { prototype } = name === 'account' ? Account : Sandbox
  const original = prototype[method]
  prototype[method] = async function (...values) {
    const reach = (moment) =>
      this.env.HOST.fetch('http://host${STEP_PATH}?call=' + step + '&moment=' + moment).catch(() => undefined)
    await reach('before')
    const result = await original.apply(this, values)
    await reach('after')
    return result
  }
}
`

const steps: Bun.BunPlugin = {
  name: 'failpoints',
  setup: (builder) => {
    builder.onLoad({ filter: /\/apps\/control\/src\/index\.ts$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8') + STEPS_SOURCE,
      loader: 'ts',
    }))
  },
}

if (SOCKET !== undefined)
  Object.assign(Bun, {
    serve: (options: Bun.Serve.Options<undefined>) => {
      const handle: unknown = Reflect.get(options, 'fetch')
      return typeof handle === 'function'
        ? serve({ ...options, fetch: reporting(SOCKET, handle) })
        : serve(options)
    },
    build: (options: Bun.BuildConfig) => build({ ...options, plugins: [...(options.plugins ?? []), steps] }),
  })
