import path from 'node:path'
import { decodeConfig } from '../../apps/control/src/config.ts'
import type { DeploySettings } from './settings.ts'

const FOLDER = import.meta.dir

/** The part of `wrangler.jsonc` that is looked at; the rest passes through. */
interface WranglerFile {
  readonly name: string
  readonly main: string
  readonly containers: readonly (Readonly<Record<string, unknown>> & {
    readonly image: string
    readonly image_build_context: string
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

/** What wrangler is given: the file, the operator's settings in it, and every path absolute. */
export type WranglerConfiguration = Omit<WranglerFile, 'vars'> & {
  readonly vars: { readonly SANDWIRE_CONFIG: string }
  readonly workers_dev: boolean
}

/** `wrangler.jsonc` as it is in the tree. */
export async function readWranglerFile(): Promise<WranglerFile> {
  return Bun.JSONC.parse(await Bun.file(path.join(FOLDER, 'wrangler.jsonc')).text()) as WranglerFile
}

/** Settings of control for a deployment; throws when control would not take them. */
function describeControl(file: WranglerFile, { url, control = {} }: DeploySettings): string {
  const { host, origin } = new URL(url)
  const config = {
    ...file.vars.SANDWIRE_CONFIG,
    ...control,
    hosts: [host],
    publicOrigins: [origin],
  }
  const text = JSON.stringify(config)
  decodeConfig(text)
  return text
}

/** Cloudflare makes the address out of the name, unless it is in a domain of one's own. */
function checkAddress(url: string, name: string): void {
  const [label, ...rest] = new URL(url).hostname.split('.')
  if (label !== name)
    throw new Error(
      `Cannot use the settings of the deployment: the Worker "${name}" is at https://${[name, ...rest].join('.')}; change url or name`,
    )
}

/** Puts the operator's settings into the file. */
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
    // One address and no other: control answers for the host of `url` alone.
    workers_dev: !isOwnDomain,
    ...(isOwnDomain && { routes: [{ pattern: new URL(url).hostname, custom_domain: true }] }),
  }
}
