import path from 'node:path'
import { decodeConfig } from '../../apps/control/src/config.ts'
import type { DeploySettings } from './settings.ts'

const FOLDER = import.meta.dir
/** Highest ceiling of running sandboxes. */
const MAX_RUNNING = 10_000

/** The fields of `wrangler.jsonc` used here; the others are passed through. */
interface WranglerFile {
  readonly name: string
  readonly main: string
  readonly containers: readonly (Readonly<Record<string, unknown>> & {
    readonly image: string
    readonly image_build_context: string
    readonly max_instances: number
  })[]
  readonly assets: {
    readonly directory: string
    readonly binding: string
    readonly run_worker_first: boolean
    readonly html_handling: 'none'
    readonly not_found_handling: 'none'
  }
  readonly r2_buckets: readonly { readonly binding: string; readonly bucket_name: string }[]
  readonly vars: { readonly SANDWIRE_CONFIG: Readonly<Record<string, unknown>> }
}

/** The configuration for wrangler: the file with the operator's settings and absolute paths. */
export type WranglerConfiguration = Omit<WranglerFile, 'vars'> & {
  readonly vars: { readonly SANDWIRE_CONFIG: string }
  readonly workers_dev: boolean
}

/** Reads `wrangler.jsonc` from the repository. */
export async function readWranglerFile(): Promise<WranglerFile> {
  return Bun.JSONC.parse(await Bun.file(path.join(FOLDER, 'wrangler.jsonc')).text()) as WranglerFile
}

/** The operator's ceilings; by default, as many sandboxes may run as there are instances. */
function withRunning(ceilings: unknown = {}, running: number): unknown {
  // Control refuses what is no object.
  if (typeof ceilings !== 'object' || ceilings === null) return ceilings
  const machine: unknown = Reflect.get(ceilings, 'machine')
  return { ...ceilings, machine: { running, ...(typeof machine === 'object' ? machine : {}) } }
}

/** The settings of control for a deployment; throws when control would refuse them. */
function describeControl(file: WranglerFile, { url, maxInstances, control = {} }: DeploySettings): string {
  const { host, origin } = new URL(url)
  const running = Math.min(MAX_RUNNING, maxInstances ?? file.containers[0]?.max_instances ?? MAX_RUNNING)
  const config = {
    ...file.vars.SANDWIRE_CONFIG,
    ...control,
    ceilings: withRunning(control['ceilings'], running),
    hosts: [host],
    publicOrigins: [origin],
  }
  const text = JSON.stringify(config)
  decodeConfig(text)
  return text
}

/** Cloudflare derives the address from the Worker name, unless the operator uses a custom domain. */
function checkAddress(url: string, name: string): void {
  const [label, ...rest] = new URL(url).hostname.split('.')
  if (label !== name)
    throw new Error(
      `Cannot use the settings of the deployment: the Worker "${name}" is at https://${[name, ...rest].join('.')}; change url or name`,
    )
}

/** Applies the operator's settings to the configuration. */
export function configure(file: WranglerFile, settings: DeploySettings): WranglerConfiguration {
  const { name = file.name, instanceType, maxInstances, bucket, base, url } = settings
  const isOwnDomain = !new URL(url).hostname.endsWith('.workers.dev')
  if (!isOwnDomain) checkAddress(url, name)
  return {
    ...file,
    name,
    main: path.resolve(FOLDER, file.main),
    containers: file.containers.map((container) => ({
      ...container,
      image: path.resolve(FOLDER, container.image),
      image_build_context: path.resolve(FOLDER, container.image_build_context),
      ...(instanceType !== undefined && { instance_type: instanceType }),
      ...(maxInstances !== undefined && { max_instances: maxInstances }),
      ...(base !== undefined && { image_vars: { BASE: base } }),
    })),
    assets: { ...file.assets, directory: path.resolve(FOLDER, file.assets.directory) },
    r2_buckets: file.r2_buckets.map((entry) => ({ ...entry, bucket_name: bucket ?? entry.bucket_name })),
    vars: { SANDWIRE_CONFIG: describeControl(file, settings) },
    // No other address, because control serves only the host of `url`.
    workers_dev: !isOwnDomain,
    ...(isOwnDomain && { routes: [{ pattern: new URL(url).hostname, custom_domain: true }] }),
  }
}
