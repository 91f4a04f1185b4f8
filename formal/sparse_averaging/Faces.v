(** In how many dimensions every set of q tokens can have all the attention, evenly.

    u i e is coordinate e of the key of token i; N keys of m numbers. A set of tokens is a function y to bool. *)

Require Import Reals Lra Lia Psatz Bool Arith.
From Formal.common Require Import Sums Sets.
Open Scope R_scope.

(** The query w scores all of y alike, and everything else less: the hull of y is a face of the hull of all keys. *)
Definition prefers (N m : nat) (u : nat -> nat -> R) (y : nat -> bool) (w : nat -> R) : Prop :=
  exists top, forall i, (i < N)%nat -> if y i then dot m w (u i) = top else dot m w (u i) < top.

(** Every set of q tokens has such a query. *)
Definition every_set (N m q : nat) (u : nat -> nat -> R) : Prop :=
  forall y, count N y = q -> exists w, prefers N m u y w.

(** A set between a smaller and a larger one, of each size between theirs. *)
Lemma between N : forall p z q, (forall i, p i = true -> z i = true) -> (count N p <= q)%nat -> (q <= count N z)%nat ->
  exists y, count N y = q /\ (forall i, (i < N)%nat -> p i = true -> y i = true) /\ (forall i, (i < N)%nat -> y i = true -> z i = true).
Proof.
  induction N; intros p z q I L H; simpl in *.
  - exists (fun _ => false). repeat split; intros; lia.
  - set (rest := (q - (if p N then 1 else if z N then (if q =? count N p then 0 else 1) else 0))%nat).
    assert (Lp : (count N p <= rest)%nat).
    { unfold rest. destruct (p N) eqn:P, (z N) eqn:Z; simpl in *; try lia; destruct (Nat.eqb_spec q (count N p)); lia. }
    assert (Lz : (rest <= count N z)%nat).
    { unfold rest. destruct (p N) eqn:P; [rewrite (I N P) in H; lia|].
      destruct (z N) eqn:Z; simpl in *; [destruct (Nat.eqb_spec q (count N p)) as [->|]|lia]; [|lia].
      assert (forall K, (count K p <= count K z)%nat) as C; [|specialize (C N); lia].
      clear -I. induction K; simpl; [lia|]. destruct (p K) eqn:P; [rewrite (I K P); lia|]. destruct (z K); lia. }
    destruct (IHN p z rest I Lp Lz) as [y [Cy [Py Zy]]].
    set (last := if p N then true else if z N then negb (q =? count N p) else false).
    exists (fun i => if i =? N then last else y i). split; [|split].
    + rewrite Nat.eqb_refl, (count_ext N _ y), Cy.
      * unfold rest, last. destruct (p N) eqn:P; [lia|]. destruct (z N) eqn:Z; [|lia].
        destruct (Nat.eqb_spec q (count N p)); simpl; lia.
      * intros i Li. now replace (i =? N) with false by (symmetry; apply Nat.eqb_neq; lia).
    + intros i Li P. destruct (Nat.eqb_spec i N) as [->|D]; [unfold last; now rewrite P|]. apply Py; [lia|exact P].
    + intros i Li Y. destruct (Nat.eqb_spec i N) as [->|D]; [|apply Zy; [lia|exact Y]].
      unfold last in Y. destruct (p N) eqn:P; [now apply I|]. now destruct (z N).
Qed.

Definition positive (x : nat -> R) (i : nat) : bool := if Rlt_dec 0 (x i) then true else false.

Lemma positive_true x i : positive x i = true -> 0 < x i.
Proof. unfold positive. now destruct (Rlt_dec 0 (x i)). Qed.

Lemma positive_false x i : positive x i = false -> x i <= 0.
Proof. unfold positive. destruct (Rlt_dec 0 (x i)); [discriminate|lra]. Qed.

(** Numbers of sum zero that are not all zero are negative somewhere. *)
Lemma some_negative N x : Sum N x = 0 -> (exists i, (i < N)%nat /\ x i <> 0) -> exists i, (i < N)%nat /\ x i < 0.
Proof.
  intros S [k [Lk Nk]].
  destruct (least_entry x N ltac:(lia)) as [i [Li Least]]. exists i. split; [exact Li|].
  destruct (Rlt_le_dec (x i) 0) as [Neg|Pos]; [exact Neg|exfalso].
  assert (0 < x k) by (pose proof (Least k Lk); lra).
  assert (0 < Sum N x); [|lra]. apply (Sum_pos N x k); [|exact Lk|assumption]. intros j Lj. pose proof (Least j Lj). lra.
Qed.

(** Positive and negative entries of numbers that vanish off a set. *)
Lemma signs_within N x y : (forall i, y i = false -> x i = 0) ->
  (count N (positive x) + count N (positive (fun i => - x i)) <= count N y)%nat.
Proof.
  intro Off. induction N; simpl; [lia|].
  destruct (y N) eqn:Y.
  - destruct (positive x N) eqn:P, (positive (fun i => - x i) N) eqn:M; try lia.
    apply positive_true in P, M. lra.
  - destruct (positive x N) eqn:P; [apply positive_true in P; rewrite (Off N Y) in P; lra|].
    destruct (positive (fun i => - x i) N) eqn:M; [apply positive_true in M; rewrite (Off N Y) in M; lra|]. lia.
Qed.

(** A dependency with at most q positive weights leaves some set of q tokens without a query. *)
Lemma left_out N m q u x : (q < N)%nat -> Sum N x = 0 -> (exists i, (i < N)%nat /\ x i <> 0) ->
  (forall e, (e < m)%nat -> Sum N (fun i => x i * u i e) = 0) -> (count N (positive x) <= q)%nat ->
  exists y, count N y = q /\ forall w, ~ prefers N m u y w.
Proof.
  intros Lq S NZ Dep C. destruct (some_negative N x S NZ) as [b [Lb Nb]].
  set (all := fun _ : nat => true).
  destruct (between N (positive x) (without all b) q) as [y [Cy [Sup Sub]]].
  - intros i P. unfold without, all. simpl. destruct (Nat.eqb_spec i b) as [->|D]; [|reflexivity].
    apply positive_true in P. lra.
  - exact C.
  - pose proof (count_without N all b Lb eq_refl) as H. unfold all in H at 2. rewrite count_all in H. lia.
  - exists y. split; [exact Cy|]. intros w [top W].
    assert (Yb : y b = false).
    { destruct (y b) eqn:E; [|reflexivity]. apply (Sub b Lb) in E. unfold without in E.
      rewrite Nat.eqb_refl, andb_false_r in E. discriminate. }
    assert (Z : Sum N (fun i => x i * (dot m w (u i) - top)) = 0).
    { rewrite (Sum_ext N _ (fun i => x i * dot m w (u i) - x i * top)) by (intros; ring).
      rewrite Sum_minus, Sum_scal_r, S.
      unfold dot. rewrite (Sum_ext N _ (fun i => Sum m (fun e => w e * (x i * u i e))))
        by (intros i _; rewrite <- Sum_scal; apply Sum_ext; intros; ring).
      rewrite Sum_swap, Sum_zero; [ring|]. intros e Le. now rewrite Sum_scal, (Dep e Le), Rmult_0_r. }
    assert (0 < Sum N (fun i => x i * (dot m w (u i) - top))); [|lra].
    apply (Sum_pos N _ b); [|exact Lb|].
    + intros i Li. pose proof (W i Li) as Wi. destruct (y i) eqn:Y; [rewrite Wi; lra|].
      destruct (positive x i) eqn:P; [rewrite (Sup i Li P) in Y; discriminate|]. apply positive_false in P. nra.
    + pose proof (W b Lb) as Wb. rewrite Yb in Wb. nra.
Qed.

Lemma too_few_dimensions N m q u : (1 <= q)%nat -> (q < N)%nat -> (m < 2 * q)%nat -> (m < N - 1)%nat -> ~ every_set N m q u.
Proof.
  intros Pq Lq M2 M1 Every.
  set (first := fun i => i <? m + 2).
  assert (Cf : count N first = (m + 2)%nat).
  { assert (forall K, count K first = Nat.min K (m + 2)) as F; [|rewrite F; lia].
    induction K; cbn [count]; [reflexivity|]. rewrite IHK. change (first K) with (K <? m + 2). destruct (Nat.ltb_spec K (m + 2)); lia. }
  destruct (underdetermined (S m) N first (fun e i => if e <? m then u i e else 1)) as [x [NZ [Off E]]]; [lia|].
  assert (S0 : Sum N x = 0).
  { pose proof (E m ltac:(lia)) as Q. cbv beta in Q. rewrite Nat.ltb_irrefl in Q. rewrite <- Q. apply Sum_ext. intros. ring. }
  assert (Dep : forall e, (e < m)%nat -> Sum N (fun i => x i * u i e) = 0).
  { intros e Le. pose proof (E e ltac:(lia)) as Q. cbv beta in Q. apply Nat.ltb_lt in Le. rewrite Le in Q.
    rewrite <- Q. apply Sum_ext. intros. ring. }
  pose proof (signs_within N x first Off) as C. rewrite Cf in C.
  destruct (le_lt_dec (count N (positive x)) q) as [L|L].
  - destruct (left_out N m q u x Lq S0 NZ Dep L) as [y [Cy No]]. destruct (Every y Cy) as [w W]. now apply (No w).
  - destruct (left_out N m q u (fun i => - x i)) as [y [Cy No]]; [exact Lq| | | |lia|].
    + rewrite Sum_opp, S0. ring.
    + destruct NZ as [i [Li Ni]]. exists i. split; [exact Li|]. lra.
    + intros e Le. rewrite (Sum_ext N _ (fun i => - (x i * u i e))) by (intros; ring). rewrite Sum_opp, (Dep e Le). ring.
    + destruct (Every y Cy) as [w W]. now apply (No w).
Qed.

(** Coefficients of the powers of t in prod_{j in y} (t - j)^2, and more of them that are zero. *)
Fixpoint gap (y : nat -> bool) (n : nat) (t : R) : R :=
  match n with O => 1 | S k => gap y k t * (if y k then (t - INR k) ^ 2 else 1) end.

Lemma Sum_first n f : Sum (S n) f = f O + Sum n (fun e => f (S e)).
Proof. induction n; [simpl; ring|]. cbn [Sum] in *. rewrite IHn. ring. Qed.

Lemma times_linear d c a : exists c', forall t, Sum (S d) (fun e => c' e * t ^ e) = (t - a) * Sum d (fun e => c e * t ^ e).
Proof.
  exists (fun e => (match e with O => 0 | S k => c k end) - a * (if e <? d then c e else 0)). intro t.
  rewrite (Sum_ext _ _ (fun e => (match e with O => 0 | S k => c k end) * t ^ e - a * ((if e <? d then c e else 0) * t ^ e)))
    by (intros; ring).
  rewrite Sum_minus, Sum_scal, Sum_first. cbn [Sum]. rewrite Nat.ltb_irrefl.
  rewrite (Sum_ext d (fun e => c e * t ^ S e) (fun e => t * (c e * t ^ e))) by (intros; simpl; ring).
  rewrite Sum_scal, (Sum_ext d (fun e => (if e <? d then c e else 0) * t ^ e) (fun e => c e * t ^ e)); [ring|].
  intros e L. apply Nat.ltb_lt in L. now rewrite L.
Qed.

Lemma gap_coefficients y n : exists c, forall t, Sum (2 * count n y + 1) (fun e => c e * t ^ e) = gap y n t.
Proof.
  induction n as [|n [c H]].
  - exists (fun _ => 1). intro t. simpl. ring.
  - simpl count. cbn [gap]. destruct (y n).
    + destruct (times_linear (2 * count n y + 1) c (INR n)) as [c1 H1]. destruct (times_linear (S (2 * count n y + 1)) c1 (INR n)) as [c2 H2]. exists c2. intro t.
      replace (2 * (count n y + 1) + 1)%nat with (S (S (2 * count n y + 1))) by lia. rewrite H2, H1, H. ring.
    + exists c. intro t. rewrite Nat.add_0_r, H. ring.
Qed.

Lemma gap_zero y n i : (i < n)%nat -> y i = true -> gap y n (INR i) = 0.
Proof.
  induction n; intros L Y; [lia|]. cbn [gap]. destruct (Nat.eq_dec i n) as [->|D].
  - rewrite Y. ring.
  - rewrite IHn by (lia || assumption). ring.
Qed.

Lemma gap_positive y n i : y i = false -> 0 < gap y n (INR i).
Proof.
  intro Y. induction n; cbn [gap]; [lra|]. apply Rmult_lt_0_compat; [exact IHn|]. destruct (y n) eqn:E; [|lra].
  assert (i <> n) by (intros ->; congruence). assert (INR i - INR n <> 0) by (intro Q; apply H, INR_eq; lra).
  simpl. rewrite Rmult_1_r. now apply Rsqr_pos_lt.
Qed.

Lemma Sum_cut k m f : (k <= m)%nat -> (forall e, (k <= e)%nat -> f e = 0) -> Sum m f = Sum k f.
Proof. intros L Z. induction L; [reflexivity|]. cbn [Sum]. rewrite (Z m) by lia. rewrite IHL. ring. Qed.

(** On the moment curve 2q dimensions are enough, and more are no worse. *)
Lemma curve_prefers N m q : (2 * q <= m)%nat -> every_set N m q (fun i e => INR i ^ S e).
Proof.
  intros L y Cy. destruct (gap_coefficients y N) as [c H]. rewrite Cy in H.
  exists (fun e => if e <? 2 * q then - c (S e) else 0), (c O).
  assert (Score : forall i, dot m (fun e => if e <? 2 * q then - c (S e) else 0) (fun e => INR i ^ S e) = c O - gap y N (INR i)).
  { intro i. unfold dot. rewrite (Sum_cut (2 * q) m) by (try exact L; intros e Le; replace (e <? 2 * q) with false
      by (symmetry; apply Nat.ltb_ge; lia); ring).
    rewrite <- H, Nat.add_1_r, Sum_first.
    rewrite (Sum_ext (2 * q) _ (fun e => - (c (S e) * INR i ^ S e))).
    - rewrite Sum_opp, pow_O. ring.
    - intros e Le. apply Nat.ltb_lt in Le. rewrite Le. ring. }
  intros i Li. rewrite Score. destruct (y i) eqn:Y.
  - rewrite gap_zero by assumption. ring.
  - pose proof (gap_positive y N i Y). lra.
Qed.

(** So are N - 1, on the corners of a simplex: the last key is zero. *)
Lemma simplex_prefers N m q : (1 <= N)%nat -> (N - 1 <= m)%nat -> every_set N m q (fun i e => if i <? N - 1 then kron e i else 0).
Proof.
  intros PN L y _. set (l := (N - 1)%nat) in *. exists (fun e => if e <? l then (if y e then 1 else 0) - (if y l then 1 else 0) else 0).
  assert (Score : forall i, (i < l)%nat ->
    dot m (fun e => if e <? l then (if y e then 1 else 0) - (if y l then 1 else 0) else 0) (fun e => if i <? l then kron e i else 0)
    = (if y i then 1 else 0) - (if y l then 1 else 0)).
  { intros i Li. unfold dot. rewrite (Sum_ext m _ (fun e => kron e i * (if e <? l then (if y e then 1 else 0) - (if y l then 1 else 0) else 0))).
    - rewrite Sum_kron by lia. apply Nat.ltb_lt in Li. now rewrite Li.
    - intros e _. apply Nat.ltb_lt in Li. rewrite Li. ring. }
  assert (Last : dot m (fun e => if e <? l then (if y e then 1 else 0) - (if y l then 1 else 0) else 0) (fun e => if l <? l then kron e l else 0) = 0).
  { apply Sum_zero. intros. rewrite Nat.ltb_irrefl. ring. }
  exists (if y l then 0 else 1). intros i Li. destruct (Nat.eq_dec i l) as [->|D].
  - rewrite Last. destruct (y l); lra.
  - rewrite Score by (unfold l in *; lia). destruct (y i), (y l); lra.
Qed.

(** @statement Sparse averaging: Dimension for all sets
    @clause even attention
    @kind clause
    @hypotheses 1 <= q < N; keys and queries of real numbers; each set may have any query
    @formula keys of m numbers with which every set of q tokens has a query that scores the set alike and all other tokens
      less exist exactly if m is at least the smaller of 2q and N - 1
    @note Attention that tends to the even one on the set needs no more than such a query, times a growing number. *)
Theorem dimension_for_all_sets :
  forall N q m, (1 <= q)%nat -> (q < N)%nat -> (exists u, every_set N m q u) <-> (Nat.min (2 * q) (N - 1) <= m)%nat.
Proof.
  intros N q m Pq Lq. split.
  - intros [u Every]. destruct (le_lt_dec (Nat.min (2 * q) (N - 1)) m) as [L|L]; [exact L|exfalso].
    apply (too_few_dimensions N m q u); try assumption; lia.
  - intro L. destruct (le_lt_dec (2 * q) m) as [A|A].
    + eexists. now apply curve_prefers.
    + eexists. apply simplex_prefers; lia.
Qed.
