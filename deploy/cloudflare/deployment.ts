import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { configure, readWranglerFile, type WranglerConfiguration } from './configuration.ts'
import { chooseSecrets, type Secrets } from './secrets.ts'
import { type DeploySettings, decodeSettings } from './settings.ts'
import { Wrangler } from './wrangler.ts'

const ROOT = path.resolve(import.meta.dir, '../..')
const SETTINGS_FILE = path.join(import.meta.dir, 'settings.json')
/** Placeholder settings for a dry run without settings. */
const NOWHERE: DeploySettings = { url: 'https://sandwire.example.workers.dev' }

/** Cloudflare's limit for a compressed Worker. */
const MAX_WORKER_BYTES = 10 * 1024 * 1024

/** Error codes of Cloudflare's API. */
const BUCKET_EXISTS = 10004
const WORKER_NOT_FOUND = 10007

export interface Deployment {
  readonly settings: DeploySettings
  readonly configuration: WranglerConfiguration
  readonly wrangler: Wrangler
}

function readSettings(file: string): DeploySettings {
  const name = path.relative(process.cwd(), file)
  if (!existsSync(file))
    throw new Error(`Cannot deploy: there is no "${name}"; write {"url": "https://…"} into it`)
  try {
    return decodeSettings(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new Error(`Cannot read "${name}": ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    })
  }
}

/** Reads and checks the settings and writes the configuration for wrangler. Only a dry run without `--settings` works without a file. */
export async function prepareDeployment(options: {
  readonly settingsFile?: string | undefined
  readonly engine?: string | undefined
  readonly mayBeNowhere: boolean
}): Promise<Deployment> {
  const { settingsFile, engine, mayBeNowhere } = options
  const isNowhere = settingsFile === undefined && mayBeNowhere && !existsSync(SETTINGS_FILE)
  const settings = isNowhere ? NOWHERE : readSettings(settingsFile ?? SETTINGS_FILE)
  const configuration = configure(await readWranglerFile(), settings)
  const scratch = path.join(ROOT, '.cache/deploy')
  mkdirSync(scratch, { recursive: true })
  const config = path.join(scratch, `${new URL(settings.url).hostname}.json`)
  writeFileSync(config, `${JSON.stringify(configuration, undefined, 2)}\n`)
  return { settings, configuration, wrangler: new Wrangler({ config, scratch, engine }) }
}

/** Bundles the Worker as it would be uploaded, without uploading it; returns its size. */
export async function bundleWorker({ wrangler }: Deployment, folder: string): Promise<{ bytes: number }> {
  rmSync(folder, { recursive: true, force: true })
  // Without the image, which needs an engine and a registry.
  const args = ['deploy', '--dry-run', '--containers-rollout', 'none', '--outdir', folder]
  const result = await wrangler.run(args)
  if (!result.isOk) throw new Error(`Cannot bundle the Worker: ${formatFailure(result)}`)
  const script = await Bun.file(path.join(folder, 'worker.js')).bytes()
  const bytes = Bun.gzipSync(script).byteLength
  if (bytes > MAX_WORKER_BYTES)
    throw new Error(`Cannot deploy the Worker: ${bytes} bytes compressed, at most ${MAX_WORKER_BYTES}`)
  return { bytes }
}

/** The account that is logged in; throws when there is none. */
export async function checkLogin({ wrangler }: Deployment): Promise<string> {
  const result = await wrangler.run(['whoami', '--json'])
  if (result.isOk) return /"email":\s*"([^"]*)"/.exec(result.stdout)?.[1] ?? 'an API token'
  throw new Error(
    'Cannot deploy: nobody is logged in; run `npm run wrangler -- login`, or set CLOUDFLARE_API_TOKEN',
  )
}

/** Creates the bucket unless it exists. */
export async function ensureBucket({ wrangler, configuration }: Deployment): Promise<void> {
  for (const { bucket_name: bucket } of configuration.r2_buckets) {
    const made = await wrangler.run(['r2', 'bucket', 'create', bucket])
    if (!made.isOk && made.errorCode !== BUCKET_EXISTS)
      throw new Error(`Cannot create the bucket "${bucket}": ${formatFailure(made)}`)
  }
}

/** Uploads missing and given secrets; returns their names and the API token, if it was generated here. */
export async function ensureSecrets(
  deployment: Deployment,
  given: Secrets,
): Promise<{ readonly uploaded: readonly string[]; readonly apiToken: string | undefined }> {
  const chosen = await chooseSecrets(await listSecrets(deployment), given)
  const uploaded = Object.keys(chosen)
  if (uploaded.length > 0) {
    const result = await deployment.wrangler.run(['secret', 'bulk'], JSON.stringify(chosen))
    if (!result.isOk) throw new Error(`Cannot upload the secrets: ${formatFailure(result)}`)
  }
  return { uploaded, apiToken: chosen['API_TOKEN'] }
}

async function listSecrets({ wrangler }: Deployment): Promise<string[]> {
  const result = await wrangler.run(['secret', 'list', '--format', 'json'])
  if (!result.isOk) {
    // First deployment: the Worker does not exist. Treating another failure like this would replace the keys.
    // `secret list` fails without a code then.
    const deployments = await wrangler.run(['deployments', 'list', '--json'])
    if (deployments.errorCode === WORKER_NOT_FOUND) return []
    throw new Error(`Cannot list the secrets: ${formatFailure(result)}`)
  }
  const listed: unknown = JSON.parse(result.stdout.slice(result.stdout.indexOf('[')))
  if (!Array.isArray(listed)) throw new Error('Cannot list the secrets: unexpected output of wrangler')
  return listed.map((entry: { readonly name?: unknown }) => String(entry.name))
}

/** wrangler's error message in one line, without colors. */
function formatFailure({ stdout, stderr }: { readonly stdout: string; readonly stderr: string }): string {
  const text = Bun.stripANSI(`${stdout}\n${stderr}`)
  const errors = text.split('\n').filter((line) => line.includes('[ERROR]'))
  const line = errors[0] ?? text.trim().split('\n').at(-1) ?? ''
  return line.replace(/^.*\[ERROR\]\s*/, '').trim() || 'wrangler did not say why'
}
