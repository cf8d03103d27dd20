/** What the renderer thread is told; requests with an id are answered. */
export type ScreenRequest =
  | { readonly kind: 'open'; readonly session: string; readonly cols: number; readonly rows: number }
  | { readonly kind: 'resize'; readonly session: string; readonly cols: number; readonly rows: number }
  | { readonly kind: 'feed'; readonly session: string; readonly id: number; readonly bytes: Uint8Array }
  | { readonly kind: 'render'; readonly session: string; readonly id: number }
  | { readonly kind: 'close'; readonly session: string }

export interface ScreenReply {
  readonly id: number
  /** The rendered screen; absent for a feed. */
  readonly data?: Uint8Array
}
