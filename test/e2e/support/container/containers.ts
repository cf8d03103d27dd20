import { type Engine, startEngine } from './engine.ts'
import { buildSandboxImage, buildSidecarImage } from './images.ts'

/** Building a base image takes a minute. */
export const CONTAINERS_READY_MS = 400_000

/** An engine with the current images, and the environment that makes `sandwire up` use them. */
export interface Containers extends AsyncDisposable {
  readonly engine: Engine
  /** Worker name unique to this run: workerd names containers after it, and they are removed at the end. */
  readonly name: string
  readonly image: string
  readonly egressImage: string
  readonly env: Readonly<Record<string, string>>
}

export async function openContainers(): Promise<Containers> {
  const engine = await startEngine()
  const name = `sandwire-e2e-${crypto.randomUUID()}`
  const image = await buildSandboxImage(engine)
  const egressImage = await buildSidecarImage(engine)
  return {
    engine,
    name,
    image,
    egressImage,
    env: {
      SANDWIRE_PROVIDER: 'container',
      DOCKER_HOST: engine.host,
      SANDWIRE_IMAGE: image,
      SANDWIRE_EGRESS_IMAGE: egressImage,
    },
    [Symbol.asyncDispose]: async () => {
      const left = await engine.docker('ps', '--all', '--quiet', '--filter', `name=workerd-${name}-`)
      const ids = left.split('\n').filter((id) => id !== '')
      if (ids.length > 0) await engine.tryDocker(['rm', '--force', ...ids])
      await engine[Symbol.asyncDispose]()
    },
  }
}
