// Deploys control and its sandboxes to Cloudflare, and runs the smoke test.
//
//   npm run deploy                          with deploy/cloudflare/settings.json
//   npm run deploy -- --dry-run             only the steps that need neither an account nor a network
//   npm run deploy -- --worker-only         a new Worker; sandboxes keep the image they have
//   npm run deploy -- --settings FILE       another deployment

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import {
  bundleWorker,
  checkLogin,
  type Deployment,
  ensureBucket,
  ensureSecrets,
  prepareDeployment,
} from '../deploy/cloudflare/deployment.ts'
import { takeGivenSecrets } from '../deploy/cloudflare/secrets.ts'
import { runSmoke } from '../deploy/cloudflare/run-smoke.ts'
import { fillAssets } from '../deploy/cloudflare/workbench.ts'
import { fillContext } from './image/context.ts'
import { findEngine } from './image/engine.ts'
import { readOptions } from './read-options.ts'

const root = path.dirname(import.meta.dir)

const USAGE = 'npm run deploy -- [--dry-run | --worker-only] [--settings FILE]'
const values = readOptions(
  {
    'dry-run': { type: 'boolean', default: false },
    'worker-only': { type: 'boolean', default: false },
    settings: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
  USAGE,
)

/** Only its owner may read it, and git ignores the folder. */
function tokenFile({ settings }: Deployment): string {
  return path.join(root, '.sandwire/deploy', `${new URL(settings.url).hostname}.token`)
}

function keepToken(file: string, token: string): void {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
  writeFileSync(file, `${token}\n`, { mode: 0o600 })
}

function findToken(file: string): string {
  const given = process.env['SANDWIRE_TOKEN']
  if (given !== undefined) return given
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    throw new Error(
      'Deployed, but not tried: no token for it here; set SANDWIRE_TOKEN and run `npm run smoke`',
    )
  }
}

/** Checks in advance what would otherwise fail after the Worker is deployed. */
function checkBuild(engine: string | undefined): void {
  // Containers on Cloudflare are linux/amd64, and sandboxd is compiled for this machine.
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error(
      'Cannot build the image here: it takes Linux on x64; use --worker-only, or deploy from there',
    )
  if (engine === undefined)
    throw new Error('Cannot build the image: no container engine answers; start Docker, or use --worker-only')
  // wrangler builds with options that Docker's legacy builder lacks.
  const isDocker = path.basename(engine) === 'docker'
  if (
    isDocker &&
    !Bun.spawnSync([engine, 'buildx', 'version'], { stdout: 'ignore', stderr: 'ignore' }).success
  )
    throw new Error('Cannot build the image: Docker has no buildx; install it, or use --worker-only')
}

/** wrangler requires the files even when it uploads nothing. */
async function buildWorkbench({ configuration }: Deployment): Promise<void> {
  const { files, bytes, firstBytes } = await fillAssets(root, configuration.assets.directory)
  const [all, first] = [bytes, firstBytes].map((count) => `${Math.ceil(count / 1024)} KiB`)
  console.log(`ok  workbench, ${files} files of ${all}, ${first} compressed before there is a prompt`)
}

async function rehearse(): Promise<void> {
  const deployment = await prepareDeployment({ settingsFile: values.settings, mayBeNowhere: true })
  console.log(`ok  settings of ${deployment.settings.url}`)
  const given = Object.keys(takeGivenSecrets(process.env, deployment.settings.control))
  console.log(`ok  secrets of this environment: ${given.length === 0 ? 'none' : given.join(', ')}`)
  await buildWorkbench(deployment)
  const { bytes } = await bundleWorker(deployment, path.join(root, '.cache/deploy/dry-run'))
  console.log(`ok  Worker, ${Math.ceil(bytes / 1024)} KiB compressed`)
  console.log('--  image, login, secrets, upload and smoke: not in a dry run')
}

async function deploy(): Promise<void> {
  const engine = findEngine()
  if (!values['worker-only']) checkBuild(engine)
  const deployment = await prepareDeployment({ settingsFile: values.settings, engine, mayBeNowhere: false })
  const given = takeGivenSecrets(process.env, deployment.settings.control)
  console.log(`ok  logged in as ${await checkLogin(deployment)}`)
  await buildWorkbench(deployment)
  await bundleWorker(deployment, path.join(root, '.cache/deploy/bundle'))
  if (!values['worker-only']) fillContext(path.join(root, '.cache/sandbox-image'), deployment.settings.agents)
  await ensureBucket(deployment)
  const { uploaded, apiToken } = await ensureSecrets(deployment, given)
  if (apiToken !== undefined) keepToken(tokenFile(deployment), apiToken)
  console.log(uploaded.length === 0 ? 'ok  secrets are there' : `ok  uploaded ${uploaded.join(', ')}`)
  const rollout = values['worker-only'] ? ['--containers-rollout', 'none'] : []
  if (!(await deployment.wrangler.show(['deploy', ...rollout])))
    throw new Error(
      'Cannot deploy: wrangler failed. If it had uploaded the Worker, that is the new one already, with the image from before',
    )
  const token = findToken(tokenFile(deployment))
  await runSmoke({ url: deployment.settings.url, token, report: (line) => console.log(line) })
}

if (values.help) {
  console.log(`Usage: ${USAGE}`)
  process.exit(0)
}
if (values['dry-run'] && values['worker-only']) {
  console.error(`error: Use --dry-run or --worker-only, not both\nhint: ${USAGE}`)
  process.exit(2)
}
try {
  await (values['dry-run'] ? rehearse() : deploy())
} catch (error) {
  console.error(`error: ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
}
