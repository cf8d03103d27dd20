import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { dockerEnv } from './docker.ts'
import type { Engine } from './engine.ts'

const ROOT = resolve(import.meta.dir, '../../../..')
const SIDECAR_FOLDER = join(import.meta.dir, 'sidecar')
const SANDBOX_IMAGE = 'sandwire-sandbox:e2e'
/** Base image of `npm run image -- --debootstrap`. */
const DEBIAN = 'sandwire-debian:bookworm'

/** Builds the current sandbox image on a base that is built once per engine. */
export async function buildSandboxImage(engine: Engine): Promise<string> {
  const before = await imageId(engine, SANDBOX_IMAGE)
  await runImageScript(engine, ['--debootstrap', '--tag', SANDBOX_IMAGE])
  // The replaced image would remain untagged and take a hundred megabytes.
  if (before !== undefined && before !== (await imageId(engine, SANDBOX_IMAGE)))
    await engine.tryDocker(['rmi', before])
  return SANDBOX_IMAGE
}

/** Builds the sandbox image with the program of an agent, and removes the one before. */
export async function buildAgentImage(engine: Engine, agent: string): Promise<string> {
  const image = `sandwire-${agent}:e2e`
  const before = await imageId(engine, image)
  await runImageScript(engine, ['--base', DEBIAN, '--agent', agent, '--tag', image])
  if (before !== undefined && before !== (await imageId(engine, image)))
    await engine.tryDocker(['rmi', before])
  return image
}

/** Builds the sandbox image on a base changed by these Dockerfile lines; disposing the result removes both. */
export async function buildSandboxImageOn(
  engine: Engine,
  change: string,
): Promise<AsyncDisposable & { readonly image: string }> {
  const base = `sandwire-e2e-base:${crypto.randomUUID()}`
  const image = `sandwire-e2e-sandbox:${crypto.randomUUID()}`
  const { code, stderr } = await engine.tryDocker(
    ['build', '--tag', base, '-'],
    `FROM ${DEBIAN}\n${change}\n`,
  )
  if (code !== 0) throw new Error(`Cannot build a base: ${stderr}`)
  const remove = async (): Promise<void> => void (await engine.tryDocker(['rmi', image, base]))
  try {
    await runImageScript(engine, ['--base', base, '--tag', image])
  } catch (error) {
    await remove()
    throw error
  }
  return { image, [Symbol.asyncDispose]: remove }
}

async function runImageScript(engine: Engine, options: readonly string[]): Promise<void> {
  const child = Bun.spawn([process.execPath, join(ROOT, 'scripts/image.ts'), ...options], {
    cwd: ROOT,
    env: dockerEnv(engine.host),
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const talk = await new Response(child.stderr).text()
  if ((await child.exited) !== 0) throw new Error(`Cannot build the image of a sandbox: ${talk}`)
}

/** Builds the stand-in for workerd's sidecar from its source and this machine's iptables and openssl, once. */
export async function buildSidecarImage(engine: Engine): Promise<string> {
  const hash = new Bun.CryptoHasher('sha256').update(Bun.version)
  const sources = readdirSync(SIDECAR_FOLDER).filter((name) => !name.endsWith('.test.ts'))
  for (const name of sources.sort()) hash.update(readFileSync(join(SIDECAR_FOLDER, name)))
  hash.update(readFileSync('/usr/sbin/iptables-restore'))
  const image = `sandwire-sidecar:${hash.digest('hex').slice(0, 12)}`
  if ((await imageId(engine, image)) !== undefined) return image
  const older = await engine.docker('images', 'sandwire-sidecar', '--format', '{{.Repository}}:{{.Tag}}')
  const context = mkdtempSync(join(tmpdir(), 'sandwire-sidecar-'))
  try {
    await compile(join(context, 'sidecar'))
    const tree = join(context, 'root')
    for (const file of neededFiles(join(context, 'sidecar'))) copyInto(tree, file)
    for (const folder of ['tmp', 'ca', 'run']) mkdirSync(join(tree, folder), { recursive: true })
    writeFileSync(
      join(context, 'Dockerfile'),
      'FROM scratch\nCOPY root/ /\nCOPY sidecar /sidecar\nENTRYPOINT ["/sidecar"]\n',
    )
    await engine.docker('build', '--tag', image, context)
  } finally {
    rmSync(context, { recursive: true, force: true })
  }
  // Other runs may use their images on a shared engine.
  if (!engine.isOwn) return image
  for (const each of older.split('\n').filter((name) => name !== '')) await engine.tryDocker(['rmi', each])
  return image
}

async function imageId(engine: Engine, image: string): Promise<string | undefined> {
  const { code, stdout } = await engine.tryDocker(['image', 'inspect', image, '--format', '{{.Id}}'])
  return code === 0 ? stdout.trim() : undefined
}

async function compile(outfile: string): Promise<void> {
  const child = Bun.spawn(
    [process.execPath, 'build', join(SIDECAR_FOLDER, 'main.ts'), '--compile', '--outfile', outfile],
    { cwd: dirname(outfile), stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' },
  )
  const talk = await new Response(child.stderr).text()
  if ((await child.exited) !== 0) throw new Error(`Cannot compile the sidecar: ${talk}`)
}

/** The sidecar's programs and all required libraries. */
function neededFiles(sidecar: string): string[] {
  const programs = ['/usr/sbin/iptables-restore', '/usr/bin/openssl']
  const plugins = [
    ...new Bun.Glob('*/xtables/lib*.so').scanSync({ cwd: '/usr/lib', absolute: true, followSymlinks: true }),
  ]
  const linked = [sidecar, ...programs].flatMap(librariesOf)
  return [...new Set([...programs, ...plugins, ...linked])]
}

function librariesOf(program: string): string[] {
  const { stdout } = Bun.spawnSync(['ldd', program])
  return [...stdout.toString().matchAll(/(\/\S+) \(0x/g)].flatMap((match) => match[1] ?? [])
}

/** Copies the target of a path under the path's own name. */
function copyInto(tree: string, file: string): void {
  const target = join(tree, file)
  mkdirSync(dirname(target), { recursive: true })
  cpSync(realpathSync(file), target)
}
