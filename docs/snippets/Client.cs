// Uses a chart index: Client https://charts.example   (Mono, on which tests run it; .NET 6 has the same classes)
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Runtime.Serialization;
using System.Runtime.Serialization.Json;
using System.Threading.Tasks;

[DataContract] class Chartset {
    [DataMember(Name = "id")] public string Id;
    [DataMember(Name = "title")] public string Title;
    [DataMember(Name = "charts")] public List<Entry> Charts; // in the detail
}
[DataContract] class Entry { [DataMember(Name = "chart")] public Chart Chart; }
[DataContract] class Chart { [DataMember(Name = "hash")] public string Hash; }
[DataContract] class ChartsetList {
    [DataMember(Name = "items")] public List<Chartset> Items;
    [DataMember(Name = "total")] public long Total;
    [DataMember(Name = "perPage")] public int PerPage;
}
[DataContract] class Lookup {
    [DataMember(Name = "status")] public string Status;
    [DataMember(Name = "sources")] public List<Source> Sources; // not if the status is "unknown"
}
[DataContract] class Source { [DataMember(Name = "ref")] public string Ref; }

class Cached { public string Tag; public byte[] Json; }

static class Client {
    static readonly HttpClient http = new HttpClient();
    // By path. Keep it on disk, so that the next run uses it.
    static readonly Dictionary<string, Cached> cache = new Dictionary<string, Cached>();

    /// The JSON at a path. Sends the ETag of an earlier response, and waits when the limit is exceeded.
    static async Task<T> Get<T>(string path) {
        for (;;) {
            var request = new HttpRequestMessage(HttpMethod.Get, path);
            if (cache.ContainsKey(path)) request.Headers.TryAddWithoutValidation("If-None-Match", cache[path].Tag);
            var response = await http.SendAsync(request);
            if ((int)response.StatusCode == 429 || response.StatusCode == HttpStatusCode.ServiceUnavailable) {
                var delay = response.Headers.RetryAfter.Delta ?? TimeSpan.FromSeconds(5);
                Console.Error.WriteLine("waiting " + delay.TotalSeconds + " s");
                await Task.Delay(delay);
                continue;
            }
            if (response.StatusCode == HttpStatusCode.NotModified) {
                Console.Error.WriteLine("not modified"); // the cached JSON is current
            } else {
                response.EnsureSuccessStatusCode();
                var json = await response.Content.ReadAsByteArrayAsync();
                cache[path] = new Cached { Tag = response.Headers.ETag.Tag, Json = json };
            }
            return (T)new DataContractJsonSerializer(typeof(T)).ReadObject(new MemoryStream(cache[path].Json));
        }
    }

    static async Task Run() {
        var last = "";
        for (var page = 1; ; page++) {
            var list = await Get<ChartsetList>("/api/chartsets?q=harbour&sort=title&perPage=1&page=" + page);
            foreach (var chartset in list.Items) {
                Console.WriteLine(chartset.Id + " " + chartset.Title);
                last = chartset.Id;
            }
            if (page * list.PerPage >= list.Total) break;
        }
        var detail = await Get<Chartset>("/api/chartsets/" + last);
        var path = "/api/charts/" + detail.Charts[0].Chart.Hash;
        await Get<Lookup>(path);
        var lookup = await Get<Lookup>(path); // the second time it is not modified
        Console.WriteLine(lookup.Status + " " + lookup.Sources.First().Ref);
    }

    static void Main(string[] arguments) {
        http.BaseAddress = new Uri(arguments[0]);
        // A way to reach you, so that the operator can ask before blocking.
        http.DefaultRequestHeaders.UserAgent.ParseAdd("example-client/1.0 (me@example.org)");
        Run().GetAwaiter().GetResult();
    }
}
