import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, expect, test } from 'bun:test'
import { type Containers, DEFAULT_EGRESS_IMAGE, validateContainers } from './containers.ts'

function validate(env: Record<string, string>, hasWorkspace = false): [Containers | undefined, string[]] {
  const problems: string[] = []
  return [validateContainers(env, { hasWorkspace }, problems), problems]
}

describe('validateContainers', () => {
  test('uses the host provider by default, whatever else is set', () => {
    expect(validate({ DOCKER_HOST: 'tcp://elsewhere:1' })).toEqual([undefined, []])
    expect(validate({ SANDWIRE_PROVIDER: 'host' })).toEqual([undefined, []])
  })

  test('reads engine and images from variables, with defaults', () => {
    expect(validate({ SANDWIRE_PROVIDER: 'container' })).toEqual([
      {
        socket: '/var/run/docker.sock',
        image: expect.stringMatching(/^sandwire-sandbox:\d/),
        egressImage: DEFAULT_EGRESS_IMAGE,
      },
      [],
    ])
    const named = {
      DOCKER_HOST: 'unix:///run/x.sock',
      SANDWIRE_IMAGE: 'a/b:1',
      SANDWIRE_EGRESS_IMAGE: 'c@sha256:0',
    }
    expect(validate({ SANDWIRE_PROVIDER: 'container', ...named })).toEqual([
      { socket: '/run/x.sock', image: 'a/b:1', egressImage: 'c@sha256:0' },
      [],
    ])
  })

  test('reports every problem at once', () => {
    const wrong = {
      SANDWIRE_PROVIDER: 'container',
      DOCKER_HOST: 'tcp://10.0.0.1:2375',
      SANDWIRE_IMAGE: 'a b',
      SANDWIRE_EGRESS_IMAGE: '../json?x',
      SANDWIRE_ISOLATION: 'none',
    }
    const [, problems] = validate(wrong, true)
    expect(problems.map((problem) => problem.split(' ')[0])).toEqual([
      'A',
      'SANDWIRE_ISOLATION',
      'DOCKER_HOST',
      'SANDWIRE_IMAGE',
      'SANDWIRE_EGRESS_IMAGE',
    ])
    expect(validate({ SANDWIRE_PROVIDER: 'podman' })[1]).toEqual([
      'SANDWIRE_PROVIDER is "podman": set it to host, container or sprites, or unset it',
    ])
  })

  test('uses the sidecar image of this workerd', () => {
    const miniflare = createRequire(import.meta.url).resolve('miniflare')
    expect(readFileSync(miniflare, 'utf8')).toContain(`"${DEFAULT_EGRESS_IMAGE}"`)
  })
})
