import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { CommandContext } from '../commands/command.ts'
import type { Credential } from './credential.ts'
import { CredentialStore } from './credential-store.ts'
import type { SignInIssuer } from './issuer-info.ts'
import { ServerTrust } from './server-trust.ts'

const ISSUER = 'https://issuer.example'
const ENDPOINTS = { issuer: ISSUER, clientId: 'cli', token: `${ISSUER}/token`, revocation: undefined }
const INFO = { issuer: ISSUER } as SignInIssuer

function jwt(claims: object): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part({ alg: 'none' })}.${part(claims)}.x`
}

function credentialOf(origin: string): Credential {
  return {
    version: 1,
    origin,
    bearer: jwt({ iss: ISSUER, aud: 'all' }),
    renewal: {
      issuer: ISSUER,
      clientId: 'cli',
      tokenEndpoint: `${ISSUER}/token`,
      bearerKind: 'access_token',
    },
  }
}

let folder: string
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'server-trust-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

/** A sign-in to a new server, whose questions the user answers so. */
function open(answer: boolean, { isTrusted = false, others = ['https://old.example'] } = {}) {
  const env = { XDG_CONFIG_HOME: folder }
  const store = new CredentialStore(env)
  for (const other of others) store.write(credentialOf(other))
  const questions: string[] = []
  const io = {
    info: () => undefined,
    confirm: async (question: string) => {
      questions.push(question)
      return answer
    },
  }
  const server = 'https://new.example'
  const context = { env, io, origin: server, server } as unknown as CommandContext
  return { trust: new ServerTrust(context, isTrusted), questions, credential: credentialOf(server) }
}

test('asks once about each server that accepts the same token (threat T2)', async () => {
  const { trust, questions, credential } = open(true)
  await trust.checkEndpoints(ENDPOINTS)
  await trust.checkToken(credential, INFO)
  expect(questions).toEqual(['Do you trust new.example?'])
})

test('signs in to no server that the user does not trust (threat T2)', async () => {
  const { trust, credential } = open(false)
  expect(trust.checkEndpoints(ENDPOINTS)).rejects.toThrow('Not signed in to new.example')
  expect(trust.checkToken(credential, INFO)).rejects.toThrow('Not signed in to new.example')
})

test.each([
  ['with --trust', { isTrusted: true }],
  ['without another sign-in', { others: [] }],
])('asks nothing %s', async (_, options) => {
  const { trust, questions, credential } = open(false, options)
  await trust.checkEndpoints(ENDPOINTS)
  await trust.checkToken(credential, INFO)
  expect(questions).toEqual([])
})
