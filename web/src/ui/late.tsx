import { lazy, Suspense, useState, type ComponentType, type ReactNode } from 'react'

interface LatePart<P> {
  load: () => Promise<unknown>
  Late: ComponentType<P & { fallback: ReactNode }>
}

// late makes a component whose code is loaded on demand or ahead of time. Loaded code is rendered at once: for a lazy
// component, React shows the fallback even then, for about 0.3 seconds.
export function late<P extends object>(fetchPart: () => Promise<ComponentType<P>>): LatePart<P> {
  let here: ComponentType<P> | undefined
  const load = async () => (here = await fetchPart())
  const Lazy = lazy(async () => ({ default: await load() })) as unknown as ComponentType<P>
  function Late({ fallback, ...props }: P & { fallback: ReactNode }) {
    // A mounted component stays the same: another one would lose its state.
    const [{ Part }] = useState(() => ({ Part: here ?? Lazy }))
    return (
      <Suspense fallback={fallback}>
        <Part {...(props as unknown as P)} />
      </Suspense>
    )
  }
  return { load, Late }
}
