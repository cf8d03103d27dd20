import { ApiError, request, requestJson } from './request.ts'

export interface User {
  readonly account: string
  readonly name: string
  readonly guest: boolean
}

/** Who is signed in; undefined: nobody. */
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

/** Where tabs of one browser, which have one sign-in, tell each other that it changed. */
const SIGN_IN_CHANNEL = 'sandwire.sign-in'

/** Tells the other tabs of this browser that somebody signed in or out. */
export function announceSignIn(): void {
  const channel = new BroadcastChannel(SIGN_IN_CHANNEL)
  channel.postMessage('changed')
  channel.close()
}

/** Hears when another tab of this browser signed in or out, as long as the page is there. */
export function onSignInChange(tell: () => Promise<void>): void {
  new BroadcastChannel(SIGN_IN_CHANNEL).addEventListener('message', () => void tell())
}
