import { lazy, Suspense, useState, type ComponentType, type ReactNode } from 'react'

interface LatePart<P> {
  load: () => Promise<unknown>
  Late: ComponentType<P & { fallback: ReactNode }>
}

// late makes a component whose code is loaded before it is shown, or when it is. Code that is there already is rendered
// at once: React shows the fallback of a lazy component even then, and keeps it for about 0.3 seconds.
export function late<P extends object>(fetchPart: () => Promise<ComponentType<P>>): LatePart<P> {
  let here: ComponentType<P> | undefined
  const load = async () => (here = await fetchPart())
  const Lazy = lazy(async () => ({ default: await load() })) as unknown as ComponentType<P>
  function Late({ fallback, ...props }: P & { fallback: ReactNode }) {
    // One that is shown keeps its component: another one would lose its state.
    const [{ Part }] = useState(() => ({ Part: here ?? Lazy }))
    return (
      <Suspense fallback={fallback}>
        <Part {...(props as unknown as P)} />
      </Suspense>
    )
  }
  return { load, Late }
}
