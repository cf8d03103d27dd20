/** An API request. */
interface ApiCall {
  readonly method: string
  /** Path below `/client/v4`, without the account. */
  readonly path: string
}

/** An uploaded Worker. */
export interface UploadedWorker {
  /** Bindings, migrations, compatibility and so on. */
  readonly metadata: Readonly<Record<string, unknown>>
  /** Modules by name. */
  readonly modules: ReadonlyMap<string, string>
}

/** A stand-in for the part of Cloudflare's API that deploying a Worker uses, with one empty account. */
export interface CloudflareApi extends AsyncDisposable {
  /** Environment that makes wrangler use it. */
  readonly env: Readonly<Record<string, string>>
  readonly calls: readonly ApiCall[]
  readonly secrets: ReadonlyMap<string, string>
  readonly buckets: ReadonlySet<string>
  /** Requested containers. */
  readonly applications: readonly Readonly<Record<string, unknown>>[]
  /** Files beside the Worker, by path. */
  readonly assets: ReadonlyMap<string, string>
  /** The Worker as last uploaded. */
  readonly worker: () => UploadedWorker | undefined
}

const ACCOUNT = '0123456789abcdef0123456789abcdef'
const TOKEN = 'api-token-of-the-test'

/** Token that wrangler uses to upload files. */
const UPLOAD_TOKEN = `e30.${Buffer.from('{"exp":9999999999}').toString('base64url')}.signature`
const UPLOADED_TOKEN = `e30.${Buffer.from('{"exp":9999999998}').toString('base64url')}.signature`

const VERSION = '01234567-89ab-4cde-8f01-23456789abcd'
const REGISTRY_PASSWORD = 'password-of-the-registry'
const CONTAINER_LIMITS = {
  account_id: ACCOUNT,
  vcpu_per_deployment: 4,
  memory_mib_per_deployment: 12288,
  disk_mb_per_deployment: 2e4,
  total_vcpu: 1500,
  total_memory_mib: 6291456,
}

const succeed = (result: unknown): Response =>
  Response.json({ success: true, errors: [], messages: [], result })
const refuse = (status: number, code: number, message: string): Response =>
  Response.json({ success: false, errors: [{ code, message }], messages: [], result: null }, { status })

async function readUpload(request: Request): Promise<UploadedWorker> {
  const form = await request.formData()
  const modules = new Map<string, string>()
  let metadata: Record<string, unknown> = {}
  for (const name of form.keys()) {
    const text = await new Response(form.get(name)).text()
    if (name === 'metadata') metadata = JSON.parse(text) as Record<string, unknown>
    else modules.set(name, text)
  }
  return { metadata, modules }
}

/** Serves it on loopback. Requests that begin with `broken` get 404. */
export function openCloudflareApi(broken?: string): CloudflareApi {
  const calls: ApiCall[] = []
  const secrets = new Map<string, string>()
  const buckets = new Set<string>()
  const applications: Record<string, unknown>[] = []
  const assets = new Map<string, string>()
  let manifest: Readonly<Record<string, { readonly hash: string }>> = {}
  let worker: UploadedWorker | undefined

  const answer = async (request: Request, path: string): Promise<Response> => {
    const { method } = request
    if (broken !== undefined && `${method} ${path}`.startsWith(broken))
      return refuse(404, 7003, 'Could not route: not found')
    const noWorker = refuse(404, 10007, 'workers.api.error.script_not_found')
    switch (`${method} ${path}`) {
      case 'GET /user/tokens/verify':
        return succeed({ id: 'token', status: 'active' })
      case 'GET /user':
        return succeed({ id: 'user', email: 'operator@example.com' })
      case 'GET /memberships':
      case 'GET /accounts':
        return succeed([])
      case 'POST /r2/buckets': {
        const { name } = (await request.json()) as { readonly name: string }
        if (buckets.has(name)) return refuse(409, 10004, 'The bucket you tried to create already exists')
        buckets.add(name)
        return succeed({ name })
      }
      case 'GET /workers/scripts/sandwire/secrets':
        return worker === undefined
          ? noWorker
          : succeed([...secrets.keys()].map((name) => ({ name, type: 'secret_text' })))
      case 'PATCH /workers/scripts/sandwire/secrets-bulk': {
        if (worker === undefined) return noWorker
        const { secrets: given } = (await request.json()) as { secrets: Record<string, { text: string }> }
        for (const [name, { text }] of Object.entries(given)) secrets.set(name, text)
        return succeed({})
      }
      case 'GET /workers/services/sandwire':
        return worker === undefined
          ? refuse(404, 10090, 'workers.api.error.service_not_found')
          : succeed({
              default_environment: { environment: 'production', script: { last_deployed_from: 'wrangler' } },
            })
      case 'POST /workers/scripts/sandwire/assets-upload-session':
        manifest = ((await request.json()) as { manifest: typeof manifest }).manifest
        return succeed({
          jwt: UPLOAD_TOKEN,
          buckets: [[...new Set(Object.values(manifest).map(({ hash }) => hash))]],
        })
      case 'POST /workers/assets/upload': {
        const form = await request.formData()
        assets.clear()
        for (const [path, { hash }] of Object.entries(manifest))
          assets.set(path, Buffer.from(await new Response(form.get(hash)).text(), 'base64').toString())
        return succeed({ jwt: UPLOADED_TOKEN })
      }
      case 'PUT /workers/scripts/sandwire':
        worker = await readUpload(request)
        return succeed({ id: 'sandwire', startup_time_ms: 1, deployment_id: VERSION.replaceAll('-', '') })
      case 'GET /r2/buckets/sandwire-files':
        return buckets.has('sandwire-files')
          ? succeed({ name: 'sandwire-files' })
          : refuse(404, 10006, 'No such bucket')
      case 'GET /workers/scripts/sandwire/settings':
        return succeed({ bindings: [] })
      case 'GET /workers/scripts/sandwire/deployments':
        return worker === undefined ? noWorker : succeed({ deployments: [] })
      case 'GET /containers/me':
        return succeed({ external_account_id: ACCOUNT, limits: CONTAINER_LIMITS })
      case 'POST /containers/registries/registry.cloudflare.com/credentials':
        return succeed({
          registry_host: 'registry.cloudflare.com',
          username: 'v1',
          password: REGISTRY_PASSWORD,
        })
      case `GET /workers/scripts/sandwire/versions/${VERSION}`: {
        const binding = { type: 'durable_object_namespace', name: 'SANDBOX', class_name: 'SandboxObject' }
        return succeed({ id: VERSION, resources: { bindings: [{ ...binding, namespace_id: 'sandboxes' }] } })
      }
      case 'GET /containers/applications':
        return succeed(applications)
      case 'POST /containers/applications':
        applications.push((await request.json()) as Record<string, unknown>)
        return succeed({ ...applications.at(-1), id: 'application' })
      case 'GET /workers/subdomain':
        return succeed({ subdomain: 'example' })
      case 'GET /workers/scripts/sandwire/subdomain':
      case 'POST /workers/scripts/sandwire/subdomain':
        return succeed({ enabled: true, previews_enabled: false })
      case 'GET /workers/scripts':
        return succeed([])
      default:
        return refuse(404, 7003, `No route for ${method} ${path}`)
    }
  }

  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const path = new URL(request.url).pathname.replace('/client/v4', '').replace(`/accounts/${ACCOUNT}`, '')
      const token = path === '/workers/assets/upload' ? UPLOAD_TOKEN : TOKEN
      if (request.headers.get('authorization') !== `Bearer ${token}`)
        return refuse(401, 10000, 'Authentication error')
      calls.push({ method: request.method, path })
      return answer(request, path)
    },
  })
  return {
    env: {
      CLOUDFLARE_API_BASE_URL: `http://127.0.0.1:${server.port}/client/v4`,
      CLOUDFLARE_API_TOKEN: TOKEN,
      CLOUDFLARE_ACCOUNT_ID: ACCOUNT,
    },
    calls,
    secrets,
    buckets,
    applications,
    assets,
    worker: () => worker,
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}
