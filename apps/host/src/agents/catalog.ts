/** A program of a coding agent, as a package of the npm registry with one executable. */
export interface AgentPackage {
  readonly name: string
  /** Subresource integrity of the pinned version. */
  readonly integrity: string
}

export interface AgentProgram {
  /** The version that this release was tested with. */
  readonly version: string
  /** The executable's path in the package. */
  readonly file: string
  /** By `PLATFORM-ARCH`, with `-musl` where the C library is musl. */
  readonly packages: Readonly<Record<string, AgentPackage>>
}

const claude = (platform: string, integrity: string): AgentPackage => ({
  name: `@anthropic-ai/claude-code-${platform}`,
  integrity: `sha512-${integrity}`,
})

/** Programs that can be installed. They have licenses of their own, so that they are never part of Sandwire. */
export const AGENT_PROGRAMS: Readonly<Record<string, AgentProgram>> = {
  claude: {
    version: '2.1.325',
    file: 'claude',
    packages: {
      'linux-x64': claude(
        'linux-x64',
        'BqZzMvP/zgLLL34S+7OzbG+cyoFp7gwWHU5koVwsyMlTAz+0zZAmbY+UkzvtN2RXxp6AcMenbYIjQJxoXfUY3w==',
      ),
      'linux-arm64': claude(
        'linux-arm64',
        'NCvQcOxr685Y4mkYUjQT8l/Ouzw0k2xWloWeyzfsUtWiOedHosPkaW6XCSpzAl1dMuvDNBF97qpWgVDrSdK2Vw==',
      ),
      'linux-x64-musl': claude(
        'linux-x64-musl',
        'oGdN1c/gsReTlQ5lAktxX8AV7bt3USQsGrTDlFjf+bdIk7Kc8GCTZLGS7aBh59vGsgn4Oz255v/SSZ7+6wWz6g==',
      ),
      'linux-arm64-musl': claude(
        'linux-arm64-musl',
        'xZLgceKCX42bUXTqz3Cd1Tc7Li43ys8+gO1SA8ZKJ4q+a0ALv+N2LHQUC1Sr+AY3Qv16VQU/yAvU/iS24CuJdg==',
      ),
    },
  },
  opencode: {
    version: '1.18.33',
    file: 'bin/opencode',
    packages: {
      'linux-x64': {
        name: 'opencode-linux-x64',
        integrity:
          'sha512-q/t/3p2CTxOT9y2kvjesb/LZab2+1eqlhhWA02Be6mjTtmYtNBcBsrI5yDo4Fw7ZSPBW2oyMIGMNRqiKQjiAWw==',
      },
    },
  },
}

/** `PLATFORM-ARCH` of this machine. */
export function platformOf(hasMusl: boolean): string {
  return `${process.platform}-${process.arch}${hasMusl ? '-musl' : ''}`
}
