import { ApiError, request, requestJson } from './request.ts'

export interface User {
  readonly account: string
  readonly name: string
  readonly guest: boolean
  /** Name of the sandbox that is created for a user who has none. */
  readonly firstSandbox: string
}

/** The signed-in user, or undefined. */
export async function readUser(): Promise<User | undefined> {
  try {
    return await requestJson<User>('/api/whoami')
  } catch (caught) {
    if (caught instanceof ApiError && caught.status === 401) return undefined
    throw caught
  }
}

export async function signOut(): Promise<void> {
  await request('/api/signout', { method: 'POST' })
  announceSignIn()
}

/** Channel on which the tabs of a browser announce that their shared sign-in changed. */
const SIGN_IN_CHANNEL = 'sandwire.sign-in'

/** Tells the browser's other tabs that the sign-in changed. */
export function announceSignIn(): void {
  const channel = new BroadcastChannel(SIGN_IN_CHANNEL)
  channel.postMessage('changed')
  channel.close()
}

/** Calls back when another tab of this browser signed in or out, for the life of the page. */
export function onSignInChange(onChange: () => Promise<void>): void {
  new BroadcastChannel(SIGN_IN_CHANNEL).addEventListener('message', () => void onChange())
}
