import { Suspense } from "react";
import { lazyView } from "../../app/lazy_view.ts";

import { thread as text } from "../../text/thread.ts";
import { Loading } from "../../ui/Notice.tsx";
import { ThreadList } from "./ThreadList.tsx";
import "./thread.css";

const ThreadView = lazyView(async () => ({ default: (await import("./ThreadView.tsx")).ThreadView }));

/** The list of threads, or the thread that the path names. */
export default function ThreadsSection({ path }: { path: string[] }) {
  const [thread] = path;
  if (thread === undefined) return <ThreadList />;
  return (
    <Suspense fallback={<Loading what={text.view.what} />}>
      <ThreadView key={thread} thread={thread} />
    </Suspense>
  );
}
